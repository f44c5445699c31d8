"""What a dressed host's repository offers, beside what the product asks for by its catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import yaml

from bringup import catalog
from e2e.lab.dressed import Package, el_packages, ubuntu_packages
from e2e.lab.packages import DRIVERS, DriverRelease
from e2e.lab.rpm import Rpm, driver_streams, spec_text

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


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.version)
def test_rocky_has_what_the_catalog_names_in_the_stream_that_it_names(driver: DriverRelease) -> None:
    distro = catalog.load().distro("rocky", "9.6")
    assert distro is not None
    documents = [each for each in yaml.safe_load_all(driver_streams(DRIVERS)) if each and each["document"] == "modulemd"]
    streams = {each["data"]["stream"]: each["data"]["artifacts"]["rpms"] for each in documents}
    for kind in _KINDS:
        wanted = distro.packages(int(driver.branch), kind)
        assert (wanted is not None) == (kind in driver.kinds)
        if wanted and wanted.module_stream:
            names = {*wanted.driver, *wanted.persistence, *wanted.fabric_manager}
            assert names <= _names(el_packages(driver))
            there = streams[wanted.module_stream.partition(":")[2]]
            assert all(any(each.startswith(f"{name}-") and f":{driver.version}-" in each for each in there) for name in names)
            other = "kmod-nvidia-latest-dkms" if kind == "open" else "kmod-nvidia-open-dkms"
            assert not any(each.startswith(other) for each in there)


def test_scripts_of_debians_packages_run_when_rpm_has_removed_what_it_replaces(tmp_path: Path) -> None:
    root, scripts = tmp_path / "root", tmp_path / "scripts"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/nvidia-smi").write_text("")
    scripts.mkdir()
    (scripts / "postinst").write_text('#!/bin/sh\n[ "$1" != configure ] || date +%s\n')
    (scripts / "prerm").write_text("#!/bin/sh\necho gone\n")
    text = spec_text(Rpm("nvidia-driver-cuda", "580.178.04", root, epoch=3, scripts=scripts))
    assert "Epoch: 3\n" in text
    assert '%posttrans\nset -- configure\n#!/bin/sh\n[ "$1" != configure ] || date +%%s\n' in text
    assert '%preun\n[ "$1" = 0 ] || exit 0\nset -- remove\n' in text
    assert text.endswith('%files\n"/usr/bin/nvidia-smi"\n')
    assert "stand-in" in text
