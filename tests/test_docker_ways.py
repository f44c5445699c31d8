"""Which ways of asking Docker for GPUs work: what the fact makes of docker's words, and the check."""

from __future__ import annotations

import pytest

from bringup.docker_ways import WAYS, ways_check
from facts.docker_ways import DockerWays

GPU = "|GPU 0: NVIDIA H200 (UUID: GPU-0)"
NO_DRIVER = '|docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'
OUTPUT = [
    "way cdi", GPU, GPU.replace("0:", "1:"), "way runtime", "|docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
    "|See 'docker run --help'.", "way gpus", NO_DRIVER, "|",
]  # fmt: skip


def test_what_each_way_gave() -> None:
    assert DockerWays().process(OUTPUT) == {
        "cdi": 2,
        "runtime": "unknown or invalid runtime name: nvidia.",
        "gpus": 'could not select device driver "" with capabilities: [[gpu]].',
    }
    assert DockerWays().process(["way cdi", "way gpus", "|NVIDIA-SMI has failed"]) == {
        "cdi": "it printed nothing",
        "gpus": "NVIDIA-SMI has failed",
    }
    assert DockerWays().process(["problem no image is named"]) == {}


def test_every_way_is_tried_as_people_type_it() -> None:
    command = str(DockerWays().command("image"))
    assert all(options in command for options in WAYS.values())


@pytest.mark.parametrize(
    ("found", "injection", "status"),
    [
        ({"cdi": 2, "runtime": 2, "gpus": 2}, "cdi", "pass"),
        ({"cdi": 2, "runtime": "no", "gpus": "no"}, "cdi", "pass"),
        ({"cdi": "no", "runtime": 2}, "runtime", "pass"),
        ({"cdi": 1, "runtime": 2, "gpus": 2}, "cdi", "fail"),
        ({"cdi": "no", "runtime": 2, "gpus": 2}, "cdi", "fail"),
        ({"runtime": 2, "gpus": 2}, "cdi", "fail"),
        ({}, "cdi", "skipped"),
        (None, "cdi", "skipped"),
    ],
)
def test_the_way_that_the_host_is_set_up_for_decides(found: dict[str, int | str] | None, injection: str, status: str) -> None:
    check = ways_check(found, 2, "cdi" if injection == "cdi" else "runtime")
    assert check.status == status
    for name, seen in (found or {}).items():
        assert f"`{WAYS[name]}`: {seen if isinstance(seen, int) else f'none ({seen})'}" in check.detail
