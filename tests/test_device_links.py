"""The script that makes the links, run on this machine in a folder of the test's own; and what is decided where systemd says nothing."""

from __future__ import annotations

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


def links(dev: Path) -> dict[str, str]:
    done = subprocess.run(
        ["sh", "-c", FILES[SCRIPT].replace("/dev/", f"{dev}/").replace("/dev\n", f"{dev}\n")],
        capture_output=True,
        text=True,
        timeout=30,
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


def test_what_systemd_does_not_say_of_units_is_not_judged() -> None:
    host = converged()
    target = target_of(host).target
    assert device_links(host.set("units", "exit 1", "failed").survey, target) is None
    assert device_links(host.set("units", "").survey, target) is not None
