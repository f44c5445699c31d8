"""Which GPU a PCI function is, decided or left open."""

from __future__ import annotations

import pytest

from bringup.catalog import Catalog


@pytest.mark.parametrize(
    ("device", "subsystem", "names"),
    [
        ("10de:2335", "10de:18be", {"H200 SXM 141GB"}),
        ("10de:2335", "1028:ffff", {"H200 SXM 141GB"}),  # one owner: the subdevice does not matter
        ("10de:2335", None, {"H200 SXM 141GB"}),
        ("10DE:26B9", None, {"L40S"}),
        ("10de:25b6", "10de:14a9", {"A16"}),
        ("10de:25b6", "1028:157e", {"A2"}),  # board makers put their own vendor there
        ("10de:25b6", None, {"A16", "A2"}),
        ("10de:25b6", "10de:0001", {"A16", "A2"}),  # a third subdevice: undecided, never the first one
        ("10de:1e30", "10de:129e", {"Quadro RTX 8000"}),
        ("10de:1e30", "10de:12ba", {"Quadro RTX 6000"}),  # the rest of the id
        ("10de:1e30", None, {"Quadro RTX 8000", "Quadro RTX 6000"}),
        ("10de:ffff", None, set()),
        ("8086:2335", None, set()),
    ],
)
def test_candidates(catalog: Catalog, device: str, subsystem: str | None, names: set[str]) -> None:
    assert {gpu.name for gpu in catalog.gpu_candidates(device, subsystem)} == names
    found = catalog.gpu(device, subsystem)
    assert (found.name if found else None) == (next(iter(names)) if len(names) == 1 else None)


def test_lowest_driver_per_branch(catalog: Catalog) -> None:
    gpu = catalog.gpu("10de:2335")
    assert gpu is not None
    assert gpu.min_driver_in(550) == gpu.min_driver
    assert gpu.min_driver_in(555) == gpu.min_driver_by_branch[555]
    assert gpu.min_driver_in(580) is None


def test_only_firm_values_may_fail_a_host(catalog: Catalog) -> None:
    values = [gpu.bf16_tflops for gpu in catalog.gpus if gpu.bf16_tflops]
    assert {value.provenance: value.is_firm for value in values} == {"table": True, "computed": False, "recalled": False}
    assert all(floor.value.is_firm for floor in catalog.floors)


def test_floor_limit_is_on_the_side_that_hurts(catalog: Catalog) -> None:
    for floor in catalog.floors:
        assert (floor.limit < floor.value.value) == (floor.better == "higher")
