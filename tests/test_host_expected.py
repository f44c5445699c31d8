"""tests/host: what must hold on a host, from settings and catalog."""

from __future__ import annotations

from datetime import date

import pytest

from bringup.catalog import load
from bringup.settings import Settings
from tests.host.expected import (
    Board,
    boards_on_bus,
    branch_problem,
    daemon_options,
    injection,
    limit_of,
    may_raise_limits,
    module_problem,
    reference,
)

CATALOG = load()
TODAY = date(2026, 11, 30)


def board(id_: str) -> Board:
    return Board("0000:06:00.0", id_, CATALOG.gpu_candidates(id_)[0])


H200, V100 = board("10de:2335"), board("10de:1db4")
LISTING = """\
0000:00:00.0/vendor:0x8086
0000:06:00.0/vendor:0x10de
0000:07:00.0/vendor:0x10de
0000:08:00.0/vendor:0x10de
0000:00:00.0/class:0x030000
0000:06:00.0/class:0x030200
0000:07:00.0/class:0x068000
0000:08:00.0/class:0x030000
0000:06:00.0/device:0x2335
0000:07:00.0/device:0x22a3
0000:08:00.0/device:0xffff
0000:06:00.0/subsystem_vendor:0x10de
0000:06:00.0/subsystem_device:0x18be
"""


def test_boards_are_nvidias_display_functions() -> None:
    first, second = boards_on_bus(LISTING, CATALOG)
    assert (first.address, first.id, first.gpu and first.gpu.name) == ("0000:06:00.0", "10de:2335", "H200 SXM 141GB")
    assert (second.address, second.gpu) == ("0000:08:00.0", None)
    assert boards_on_bus("", CATALOG) == ()


@pytest.mark.parametrize(
    ("asked", "version", "accept", "says"),
    [
        ("580", "580.159.04", (), None),
        ("580.159", "580.159.04", (), None),
        ("580.159.04", "580.159.04", (), None),
        ("580.159.04", "580.167.01", (), "driver 580.167.01 is loaded, gpu_driver_branch is 580.159.04"),
        ("58", "580.159.04", (), "driver 580.159.04 is loaded, gpu_driver_branch is 58"),
        ("535", "580.159.04", (), "driver 580.159.04 is loaded, gpu_driver_branch is 535"),
        ("auto", "580.159.04", (), None),
        ("auto", "999.10", (), "driver branch 999 is not in the catalog"),
        ("auto", "470.256.02", (), "driver 470.256.02 is of branch 470, which is at its end of life"),
        ("auto", "470.256.02", ("end-of-life",), None),
        ("lts", "580.159.04", (), None),
    ],
)
def test_branch(asked: str, version: str, accept: tuple[str, ...], says: str | None) -> None:
    settings = Settings(driver_branch=asked, accept=frozenset(accept))
    assert branch_problem(settings, CATALOG, version, TODAY) == says


def test_a_short_term_branch_is_not_lts() -> None:
    other = next(each for each in CATALOG.branches if each.kind == "new-feature")
    says = branch_problem(Settings(driver_branch="lts"), CATALOG, f"{other.number}.10", TODAY)
    assert says == f"driver {other.number}.10 is of a new-feature branch, gpu_driver_branch is lts"


def test_kernel_module() -> None:
    assert module_problem(Settings(), [H200], "open") is None
    assert module_problem(Settings(), [V100], "proprietary") is None
    assert "does not run with it" in str(module_problem(Settings(), [H200, V100], "open"))
    says = "the open module is loaded, gpu_kernel_module is proprietary"
    assert module_problem(Settings(kernel_module="proprietary"), [H200], "open") == says


@pytest.mark.parametrize(
    ("chosen", "docker", "wanted"),
    [
        ("auto", "20.10.24+dfsg1", "runtime"),
        ("auto", "26.1.5", "cdi"),
        ("runtime", "29.7.2", "runtime"),
        ("cdi", "25.0.0", "cdi"),
    ],
)
def test_injection(chosen: str, docker: str, wanted: str) -> None:
    assert injection(Settings(injection=chosen), CATALOG, docker) == wanted  # type: ignore[arg-type]


def test_daemon_options_are_those_of_the_settings_and_the_users_win() -> None:
    settings = Settings(insecure_registries=("r:5000",), docker_options={"default-shm-size": "1g", "live-restore": True})
    assert daemon_options(settings) == {"default-shm-size": "1g", "insecure-registries": ["r:5000"], "live-restore": True}


def test_reference() -> None:
    assert reference("example.com/a/b@sha256:12", CATALOG, None, []) == "example.com/a/b@sha256:12"
    assert reference(CATALOG.images[0].name, CATALOG, None, []) == CATALOG.images[0].pinned
    assert reference("no-such", CATALOG, "580.159.04", [H200]) is None
    assert reference("auto", CATALOG, None, [H200]) is None
    chosen = reference("auto", CATALOG, "580.159.04", [H200])
    assert chosen in [each.pinned for each in CATALOG.images if each.family == "pytorch"]


def test_limits() -> None:
    assert may_raise_limits("Name:\tsystemd\nCapBnd:\t000001ffffffffff\n")
    assert not may_raise_limits("CapBnd:\t000001fffeffffff\n")
    assert limit_of("infinity\n") == limit_of("unlimited") == "unlimited"
    assert limit_of("8192", 1024) == limit_of("8388608") == 8388608
