"""dnf's version locks: what a line says, which are ours, and what they leave of an index."""

from __future__ import annotations

import pytest

from bringup import version_locks
from bringup.steps.version_locks import allowed, foreign, ours, to_lift
from bringup.survey import Survey
from tests.machines import machine

V580, V570 = "3:580.159.04-1.el9", "3:570.172.08-1.el9"
LINES = [
    ("nvidia-driver-cuda-3:580.159.04-1.el9.*", "nvidia-driver-cuda", V580, True),
    ("nvidia-driver-cuda-3:580.159.04-1.el9.*", "nvidia-driver-cuda", V570, False),
    ("nvidia-driver-cuda-3:580.159.04-1.el9.*", "nvidia-driver-cuda-libs", V580, False),
    ("nvidia-driver-cuda-580.159.04-1.el9.x86_64", "nvidia-driver-cuda", V580, True),
    ("nvidia-driver-cuda-580.159.04", "nvidia-driver-cuda", V580, True),
    ("nvidia-driver*-3:580.*", "nvidia-driver-cuda", V580, True),
    ("containerd.io-1.7.2", "containerd.io", "0:1.7.2-1.el9", True),
    ("containerd.io-1.7.2", "containerd.io", "0:1.7-1.el9", False),
    ("docker-ce", "docker-ce", "3:29.7.2-1.el9", False),
    ("!nvidia-driver-cuda-3:580.159.04-1.el9.*", "nvidia-driver-cuda", V580, False),
]


@pytest.mark.parametrize(("line", "name", "version", "covers"), LINES)
def test_a_line_covers_a_package_at_its_very_version(line: str, name: str, version: str, covers: bool) -> None:
    assert version_locks.covers(line, name, version) is covers


ALLOWED = [
    ([], V580, True),
    (["nvidia-driver-cuda-3:580.159.04-1.el9.*"], V580, True),
    (["nvidia-driver-cuda-3:580.159.04-1.el9.*"], V570, False),
    (["nvidia-driver-cuda-3:580.159.04-1.el9.*", "nvidia-driver-cuda-3:570.172.08-1.el9.*"], V570, True),
    (["!nvidia-driver-cuda-3:580*"], V580, False),
    (["!nvidia-driver-cuda-3:580*"], V570, True),
    (["!nvidia-*"], V570, False),
    (["nvidia-driver-cuda"], V570, True),
    (["other-1.0-1"], V570, True),
]


@pytest.mark.parametrize(("lines", "version", "may"), ALLOWED)
def test_what_the_lines_allow(lines: list[str], version: str, may: bool) -> None:
    assert version_locks.allows(lines, "nvidia-driver-cuda", version) is may


def test_comments_and_blank_lines_lock_nothing() -> None:
    assert version_locks.entries(["", "# Added lock on Mon", "a-0:1-1.*", "  "]) == ["a-0:1-1.*"]


def test_a_package_is_written_as_dnf_takes_it() -> None:
    assert version_locks.spec("a", V580) == f"a-{V580}" and version_locks.spec("a", "1-1") == "a-0:1-1"


def host(locks: str, packages: str = "", held: str = "") -> Survey:
    found = machine("rocky9 h100").set("version_locks", locks)
    lines = [*found.sections["packages"][1], *(f"{each} install installed x86_64" for each in packages.split("\n") if each)]
    return found.set("packages", "\n".join(lines)).set("held_by_us", held).survey


SET = f"nvidia-driver-cuda {V580}\nnvidia-driver-cuda-libs {V580}\nnvidia-persistenced {V580}"


def test_packages_are_held_where_a_line_has_their_version() -> None:
    survey = host(f"nvidia-driver-cuda-{V580}.*\nnvidia-persistenced-{V570}.*", SET)
    held = {name for name, each in survey["packages"]["installed"].items() if each["held"]}
    assert held == {"nvidia-driver-cuda"} == set(survey["packages"]["holds"] or [])


def test_ours_are_exact_lines_for_what_we_noted_as_held_and_they_go_together() -> None:
    lines = [
        f"nvidia-driver-cuda-{V580}.*",
        f"nvidia-driver-cuda-libs-{V580}.*",
        "docker-ce-3:29.7.2-1.el9.*",
        "nvidia-persistenced-3:580*",
    ]
    survey = host("\n".join(lines), SET, "nvidia-driver-cuda\nnvidia-driver-cuda-libs\nnvidia-persistenced")
    assert ours(survey) == lines[:2] and foreign(survey) == lines[2:]
    assert to_lift(survey, ["nvidia-driver-cuda"]) == lines[:2] and to_lift(survey, ["docker-ce"]) == []


def test_without_a_note_of_ours_all_lines_are_foreign() -> None:
    survey = host(f"nvidia-driver-cuda-{V580}.*", SET)
    assert ours(survey) == [] and foreign(survey) == [f"nvidia-driver-cuda-{V580}.*"]


def test_an_index_is_read_without_what_foreign_locks_rule_out() -> None:
    survey = host(f"nvidia-driver-cuda-{V570}.*")
    offered = {"nvidia-driver-cuda": [V570, V580], "nvidia-persistenced": [V570, V580]}
    assert allowed(survey, offered) == {"nvidia-driver-cuda": [V570], "nvidia-persistenced": [V570, V580]}


def test_several_versions_side_by_side_are_found_by_their_full_names() -> None:
    kernels = "kernel-devel 0:5.14.0-99.el9\nkernel-devel 0:5.14.0-570.12.1.el9_6\ngpg-pubkey 0:d42d0685-62589a51"
    there = host("", kernels)["packages"]["installed"]
    assert there["kernel-devel"]["version"] == "0:5.14.0-570.12.1.el9_6"
    assert {
        "kernel-devel-5.14.0-99.el9.x86_64",
        "kernel-devel-5.14.0-570.12.1.el9_6.x86_64",
        "gpg-pubkey-d42d0685",
    } <= there.keys()


def test_a_plugin_that_is_switched_off_or_missing_is_told_apart() -> None:
    off = machine("rocky9 h100").set("version_locks", "versionlock is switched off in x", "failed").survey["packages"]["dnf"]
    assert off and off["version_locks"] == {"unreadable": "versionlock is switched off in x"}
    none = machine("rocky9 h100").survey["packages"]["dnf"]
    assert none and none["version_locks"] is None and machine("debian12 h100").survey["packages"]["dnf"] is None
