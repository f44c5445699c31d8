"""Driver versions are compared number by number, whatever a distribution writes around them."""

from __future__ import annotations

import random

import pytest

from bringup import versions

SORTED = [
    "470.256.02", "535.54.03", "535.309.01", "550.54.14", "580.95.05-1", "3:580.159.03-1", "580.159.04-0ubuntu0.22.04.1", "580.159.04-1",
    "580.159.04-9", "580.159.04-10", "580.178.04-1", "620.70.06",
]  # fmt: skip


def test_the_newest_is_found_in_any_order() -> None:
    for end in range(1, len(SORTED) + 1):
        some = SORTED[:end]
        random.Random(end).shuffle(some)
        assert versions.newest(some) == SORTED[end - 1]
    assert versions.newest([]) is None


BRANCHES = [("580.159.04", 580), ("3:580.159.04-1", 580), ("580.159.04-0ubuntu0.24.04.1", 580), ("495.46", 495)]


@pytest.mark.parametrize(("version", "branch"), BRANCHES)
def test_the_branch_of_a_version(version: str, branch: int) -> None:
    assert versions.branch_of(version) == branch


@pytest.mark.parametrize("text", ["", "580", "1.20.0-1", "580.x", "580.159.04.1", "v580.159.04", "predicted"])
def test_what_is_no_driver_version_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is no driver version"):
        versions.branch_of(text)
    assert not versions.matches(text, "580")


MATCHES = [
    ("580.159.04-1", "580", True), ("580.159.04-1", "580.159.04", True), ("580.159.04-1", "580.159.03", False),
    ("580.159.04-1", "58", False), ("595.71.05-1", "580", False), ("2:580.95.05-1", "580.95.05", True),
    ("580.159.040-1", "580.159.04", False),
]  # fmt: skip


@pytest.mark.parametrize(("version", "wanted", "is_one"), MATCHES)
def test_a_version_of_a_branch_or_the_exact_one(version: str, wanted: str, is_one: bool) -> None:
    assert versions.matches(version, wanted) is is_one


def test_a_floor_is_numbers_and_not_text() -> None:
    assert versions.at_least("580.178.04-1", "580.95.05") and versions.at_least("1.20.0-1", "1.9.2")
    assert not versions.at_least("580.95.05", "580.178.04") and versions.at_least("580.178.04", "580.178.04")
