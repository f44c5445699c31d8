"""Distributions by os-release, package names over the renames, headers, repositories."""

from __future__ import annotations

from typing import Literal

import pytest

from bringup.catalog import Catalog, Distro, Headers, Packages


def distro(catalog: Catalog, name: str) -> Distro:
    found = catalog.distro(*name.split())
    assert found is not None
    return found


def names(catalog: Catalog, name: str, branch: int, module: Literal["open", "proprietary"] = "open") -> Packages:
    found = distro(catalog, name).packages(branch, module)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("os_id", "version_id", "version"),
    [
        ("debian", "12", "12"),
        ("rocky", "9.6", "9"),
        ("almalinux", "10.1", "10"),
        ("sles", "15.6", "15"),
        ("ubuntu", "24.04", "24.04"),
        ("ubuntu", "24.10", None),  # not 24.04, and not "24"
        ("debian", "", None),
        ("debian", "11", None),
        ("linuxmint", "22", None),  # ID_LIKE=ubuntu does not count
    ],
)
def test_found_by_os_release(catalog: Catalog, os_id: str, version_id: str, version: str | None) -> None:
    found = catalog.distro(os_id, version_id)
    assert (found.version if found else None) == version


def test_fabric_manager_loses_its_branch_at_580(catalog: Catalog) -> None:
    for name in ("debian 12", "ubuntu 24.04"):
        assert names(catalog, name, 575).fabric_manager == ("nvidia-fabricmanager-575",)
        assert names(catalog, name, 580).fabric_manager == ("nvidia-fabricmanager",)
    for name in ("rocky 9", "sles 15"):
        assert names(catalog, name, 575).fabric_manager == ("nvidia-fabric-manager",)
        assert names(catalog, name, 580).fabric_manager == ("nvidia-fabricmanager",)


def test_ubuntu_packages_lose_their_branch_at_590(catalog: Catalog) -> None:
    assert "nvidia-dkms-580-open" in names(catalog, "ubuntu 24.04", 580).driver
    assert "nvidia-dkms-open" in names(catalog, "ubuntu 24.04", 590).driver
    assert names(catalog, "ubuntu 24.04", 580).persistence != names(catalog, "ubuntu 24.04", 590).persistence


def test_debian_packages_never_had_one(catalog: Catalog) -> None:
    assert names(catalog, "debian 13", 580).driver == names(catalog, "debian 13", 620).driver


def test_suse_changes_its_generation_at_590(catalog: Catalog) -> None:
    assert all("G06" in name for name in names(catalog, "sles 15", 580).driver)
    assert all("G07" in name for name in names(catalog, "sles 15", 595).driver)


def test_module_kinds_have_their_own_packages_until_615(catalog: Catalog) -> None:
    for entry in catalog.distros:
        kinds = [entry.packages(610, module) for module in ("open", "proprietary")]
        assert kinds[0] and kinds[1] and kinds[0].driver != kinds[1].driver
        assert entry.packages(615, "proprietary") is None
        assert entry.packages(615, "open") is not None


def test_module_streams_only_where_there_is_modularity(catalog: Catalog) -> None:
    assert names(catalog, "rocky 9", 580).module_stream == "nvidia-driver:580-open"
    assert names(catalog, "rocky 9", 580, "proprietary").module_stream == "nvidia-driver:580-dkms"
    assert names(catalog, "rocky 10", 580).module_stream is None


def test_unknown_branch_has_no_names(catalog: Catalog) -> None:
    assert distro(catalog, "debian 12").packages(390, "proprietary") is None


@pytest.mark.parametrize(
    ("name", "kernel", "headers"),
    [
        ("debian 12", "6.1.0-57-cloud-amd64", Headers("linux-headers-6.1.0-57-cloud-amd64", "linux-headers-cloud-amd64")),
        ("debian 13", "6.12.107+deb13-amd64", Headers("linux-headers-6.12.107+deb13-amd64", "linux-headers-amd64")),
        ("ubuntu 24.04", "6.8.0-1015-aws", Headers("linux-headers-6.8.0-1015-aws", "linux-headers-aws")),
        ("debian 12", "6.18.44-fc", Headers("linux-headers-6.18.44-fc", None)),  # a kernel built elsewhere
        ("sles 15", "6.18.44-fc", None),
        ("rocky 9", "5.14.0-570.12.1.el9_6.x86_64", Headers("kernel-devel-5.14.0-570.12.1.el9_6.x86_64", "kernel-devel")),
        ("amzn 2023", "6.1.150-174.el2023.x86_64", Headers("kernel-devel-6.1.150-174.el2023.x86_64", "kernel-devel")),
        ("amzn 2023", "6.12.40-64.el2023.x86_64", Headers("kernel6.12-devel-6.12.40-64.el2023.x86_64", "kernel6.12-devel")),
        ("amzn 2023", "7.2.0-1.el2023.x86_64", None),
        ("sles 15", "5.14.21-150500.55.7-default", Headers("kernel-default-devel=5.14.21-150500.55.7", "kernel-default-devel")),
    ],
)
def test_headers(catalog: Catalog, name: str, kernel: str, headers: Headers | None) -> None:
    assert distro(catalog, name).headers(kernel) == headers


def test_signed_modules_of_ubuntu_are_per_kernel_flavour(catalog: Catalog) -> None:
    own = distro(catalog, "ubuntu 24.04").own_driver(580)
    assert own is not None and own.signed
    assert "linux-modules-nvidia-580-server-open-aws" in own.packages("open", "6.8.0-1015-aws")
    assert own.packages("open", "6.18.44-fc") == ()


def test_debian_12_has_no_open_module_of_its_own(catalog: Catalog) -> None:
    own = distro(catalog, "debian 12").own_driver(535)
    assert own is not None
    assert own.packages("open", "6.1.0-57-amd64") == ()
    assert own.packages("proprietary", "6.1.0-57-amd64")


@pytest.mark.parametrize("arch", ["aarch64", "arm64", "sbsa"])
def test_arm_is_called_sbsa_by_one_and_arm64_by_the_others(catalog: Catalog, arch: str) -> None:
    debian = distro(catalog, "debian 13")
    assert debian.repo_id(arch) == "debian13/sbsa"
    driver = catalog.repository("nvidia-driver", debian, arch)
    toolkit = catalog.repository("nvidia-toolkit", debian, arch)
    docker = catalog.repository("docker", distro(catalog, "rocky 9"), arch)
    assert driver and driver.url.endswith("/debian13/sbsa/") and driver.key_url.startswith(driver.url)
    assert toolkit and toolkit.url.endswith("/arm64/")
    assert docker and docker.url.endswith("/centos/9/aarch64/stable/")


def test_no_repository_where_there_is_none(catalog: Catalog) -> None:
    assert distro(catalog, "debian 12").repo_id("riscv64") is None
    assert catalog.repository("nvidia-driver", distro(catalog, "debian 12"), "riscv64") is None
    assert catalog.repository("docker", distro(catalog, "amzn 2023"), "x86_64") is None


def test_newer_repositories_have_a_key_each(catalog: Catalog) -> None:
    fingerprints = [
        found.fingerprint
        for name in ("debian 12", "debian 13", "ubuntu 24.04", "ubuntu 26.04", "rocky 9")
        if (found := catalog.repository("nvidia-driver", distro(catalog, name), "x86_64"))
    ]
    assert all(fingerprints)
    assert len({fingerprint.value for fingerprint in fingerprints if fingerprint}) == 4
