"""The script that makes the links, run on this machine in a folder of the test's own; and what is decided where systemd says nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bringup.steps.device_links import FILES, SCRIPT, device_links
from tests.surveys import converged, target_of

NUMBERS = {"nvidia0": "1:3", "nvidia-uvm": "1:5", "nvidia-caps/nvidia-cap1": "1:7"}  # of /dev/null, /dev/zero, /dev/full


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """A folder in the place of /dev, whose devices lead to ones that everybody may look at."""
    (tmp_path / "nvidia-caps").mkdir()
    for name, real in zip(NUMBERS, ("null", "zero", "full"), strict=True):
        (tmp_path / name).symlink_to(f"/dev/{real}")
    (tmp_path / "nvidia-file").write_text("no device")
    return tmp_path


def script(dev: Path) -> str:
    return FILES[SCRIPT].replace("/dev/", f"{dev}/").replace(f">{dev}/null", ">/dev/null").replace("/proc/", f"{dev}/proc/")


def links(dev: Path, *arguments: str, **environment: str) -> dict[str, str]:
    done = subprocess.run(
        ["sh", "-c", script(dev), "device-links", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return {each.name: str(each.readlink()) for each in (dev / "char").iterdir()}


def test_every_device_gets_a_link_by_its_number(dev: Path) -> None:
    assert links(dev) == {number: f"../{name}" for name, number in NUMBERS.items()}


def test_a_link_that_leads_elsewhere_is_turned_and_those_of_others_stay(dev: Path) -> None:
    (dev / "char").mkdir()
    for name, to in (("1:3", "../nvidia-uvm"), ("1:5", "../gone"), ("5:0", "../tty"), ("1:7", "/dev/full")):
        (dev / "char" / name).symlink_to(to)
    assert links(dev) == {"1:3": "../nvidia0", "1:5": "../nvidia-uvm", "5:0": "../tty", "1:7": "/dev/full"}


def test_the_nodes_of_every_gpu_are_asked_for_first(dev: Path) -> None:
    for name, text in (("0000:1b:00.0", "Device Minor: \t 0\n"), ("0000:43:00.0", "Model: \t X\nDevice Minor: \t 11\n")):
        (dev / "proc/driver/nvidia/gpus" / name).mkdir(parents=True)
        (dev / "proc/driver/nvidia/gpus" / name / "information").write_text(text)
    tool = dev / "tools/nvidia-modprobe"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$*" >>{dev}/asked\nln -s /dev/random {dev}/nvidia"${{2#-c=}}" 2>{dev}/errors || :\n')
    tool.chmod(0o755)
    found = links(dev, PATH=f"{tool.parent}:{os.environ['PATH']}")
    assert (dev / "asked").read_text().splitlines() == ["-u -c=0", "-u -c=11"]
    assert found["1:8"] == "../nvidia11"


def test_nodes_that_come_while_it_runs_are_waited_for(dev: Path) -> None:
    with subprocess.Popen(["sh", "-c", f"until [ -e {dev}/char/1:3 ]; do sleep 0.05; done; ln -s /dev/urandom {dev}/nvidia1"]):
        assert links(dev, "--settle")["1:9"] == "../nvidia1"


def test_nothing_starts_it_but_what_concerns_it() -> None:
    """`>/dev/null` of any process is an event in /dev."""
    watched = [line.partition("=")[2] for text in FILES.values() for line in text.splitlines() if line.startswith("Path")]
    assert watched and all(each.startswith("/dev/nvidia-caps") for each in watched)


def test_what_systemd_does_not_say_of_units_is_not_judged() -> None:
    host = converged()
    target = target_of(host).target
    assert device_links(host.set("units", "exit 1", "failed").survey, target) is None
    assert device_links(host.set("units", "").survey, target) is not None
