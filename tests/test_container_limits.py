"""Limits seen from inside a container: by root and by another user, for whom a capability does nothing."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bringup import verdicts
from bringup.container_limits import Inside, Limits, bytes_of, limit_checks
from bringup.report import Check
from facts import in_container
from facts.verification import ContainerLimits
from tests.surveys import BASES, target_of

TARGET = target_of(BASES["converged debian13 8 x h200"]()).target
SOUND = Inside(memlock="unlimited", nofile="1048576", shm_bytes=8 << 30, cgroup_version=2, devices=["/dev/nvidia0"], closed=[])


def checks(root: dict[str, Any] | None = None, other: dict[str, Any] | None = None) -> dict[str, Check]:
    users = {"0": cast(Inside, {**SOUND, **(root or {})}), "65534": cast(Inside, {**SOUND, **(other or {})})}
    return {each.name: each for each in limit_checks(Limits(problem=None, users=users), TARGET)}


def test_a_sound_container_passes_for_both_users() -> None:
    assert {each.status for each in checks().values()} == {"pass"}


@pytest.mark.parametrize(
    ("root", "other", "name", "said"),
    [
        ({"memlock": "8388608"}, {"memlock": "8388608"}, "memlock-in-container", "8388608 in the container, unlimited is wanted"),
        ({}, {"memlock": "8388608"}, "memlock-in-container", "8388608 (user 65534) in the container"),
        ({"memlock": None}, {}, "memlock-in-container", "None (user 0)"),
        ({"shm_bytes": 64 << 20}, {"shm_bytes": 64 << 20}, "shm-in-container", "67108864 bytes in the container, 8g is wanted"),
        ({"shm_bytes": None}, {"shm_bytes": None}, "shm-in-container", "8g is wanted"),
        (
            {},
            {"devices": [], "closed": ["/dev/nvidia0", "/dev/nvidiactl"]},
            "devices-in-container",
            "/dev/nvidiactl (user 65534)",
        ),
        ({"devices": []}, {"devices": []}, "devices-in-container", "no NVIDIA device file"),
    ],
)
def test_what_is_too_small_or_closed_is_named_with_its_user(
    root: dict[str, Any], other: dict[str, Any], name: str, said: str
) -> None:
    found = checks(root, other)
    assert found[name].status == "fail" and said in found[name].detail
    assert verdicts.function(found.values()) == "not proven"


def test_where_the_host_may_not_raise_limits_what_it_has_is_a_warning() -> None:
    users = {"0": SOUND, "65534": cast(Inside, {**SOUND, "memlock": "8388608"})}
    (check,) = [
        each for each in limit_checks(Limits(problem=None, users=users), replace(TARGET, memlock=None)) if "memlock" in each.name
    ]
    assert check.status == "warn"


def test_what_was_not_seen_is_skipped_and_no_pass() -> None:
    for found in (None, Limits(problem="no such image", users={}), Limits(problem="gone", users={"0": SOUND})):
        assert "skipped" in {each.status for each in limit_checks(found, TARGET)}


def test_the_containers_own_words_become_values() -> None:
    lines = ["user 0", "memlock unlimited", "nofile 1048576", "shm 65536", "cgroup 2", "device /dev/nvidia0",
             "user 65534", "memlock 8388608", "closed /dev/nvidia0", "noise",
             "problem docker: Error response from daemon: gone"]  # fmt: skip
    found = ContainerLimits().process(lines)
    assert found["problem"] == "gone"
    assert found["users"]["0"] == Inside(
        memlock="unlimited", nofile="1048576", shm_bytes=64 << 20, cgroup_version=2, devices=["/dev/nvidia0"], closed=[]
    )
    assert found["users"]["65534"]["closed"] == ["/dev/nvidia0"] and found["users"]["65534"]["shm_bytes"] is None


def test_the_script_that_runs_inside_tells_what_this_machine_gives() -> None:
    done = subprocess.run(["sh", "-c", in_container.INSIDE], capture_output=True, text=True, timeout=30, check=True)
    found = ContainerLimits().process([f"user {os.getuid()}", *done.stdout.splitlines()])["users"][str(os.getuid())]
    assert found["memlock"] and found["nofile"] and found["cgroup_version"] in (1, 2)
    assert Path("/dev/shm").exists() and found["shm_bytes"]


def test_a_size_as_docker_reads_it() -> None:
    assert [bytes_of(each) for each in ("8g", "512m", "1k", "7", "8G")] == [8 << 30, 512 << 20, 1024, 7, 8 << 30]
