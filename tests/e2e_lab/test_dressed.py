"""What a dressed host's repository offers, beside what the product asks for by its catalog."""

from __future__ import annotations

from typing import Literal

import pytest

from bringup import catalog
from e2e.lab.dressed import Package, ubuntu_packages
from e2e.lab.packages import DRIVERS, DriverRelease

_KINDS: tuple[Literal["open", "proprietary"], ...] = ("open", "proprietary")


def _names(packages: list[Package]) -> set[str]:
    return {package.name for package in packages}


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.version)
def test_ubuntu_has_what_the_catalog_names(driver: DriverRelease) -> None:
    distro = catalog.load().distro("ubuntu", "24.04")
    assert distro is not None
    for kind in _KINDS:
        wanted = distro.packages(int(driver.branch), kind)
        assert (wanted is not None) == (kind in driver.kinds)
        if wanted:
            assert {*wanted.driver, *wanted.persistence, *wanted.fabric_manager} <= _names(ubuntu_packages(driver))


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.version)
def test_every_part_of_debians_driver_is_in_one_package_of_its_kind(driver: DriverRelease) -> None:
    parts = [part for package in ubuntu_packages(driver) for part in package.parts]
    assert len(parts) == len(set(parts))
    assert {"libcuda1", "libnvidia-ml1", "nvidia-driver-cuda", "nvidia-persistenced", "nvidia-kernel-open-dkms"} <= set(parts)


def test_packages_of_all_branches_exclude_each_other() -> None:
    groups = [{package.group for package in ubuntu_packages(driver) if package.parts} for driver in DRIVERS]
    assert all(group == groups[0] and "" not in group for group in groups)
