"""Kernels that a package manager would bring along with a driver."""

from __future__ import annotations

import pytest

from bringup.transactions import kernels_brought, refusal_of_kernels

AZURE = """NOTE: This is only a simulation!
Inst linux-image-5.15.0-1098-azure (5.15.0-1098.107 Ubuntu:22.04/jammy-updates [amd64])
Inst linux-modules-nvidia-570-server-5.15.0-1098-azure (5.15.0-1098.107 Ubuntu:22.04/jammy-updates [amd64])
Conf linux-image-5.15.0-1098-azure (5.15.0-1098.107 Ubuntu:22.04/jammy-updates [amd64])
"""
DEBIAN = """Inst linux-headers-6.1.0-57-cloud-amd64 (6.1.190-1 Debian:12.15/oldstable [amd64])
Inst linux-image-cloud-amd64 [6.1.176-1] (6.1.190-1 Debian:12.15/oldstable [amd64])
Inst linux-image-6.1.0-57-cloud-amd64 (6.1.190-1 Debian:12.15/oldstable [amd64])
"""
UNSIGNED = "Inst linux-image-unsigned-6.8.0-1046-oracle (6.8.0-1046.47 Ubuntu:24.04/noble-updates [arm64])\n"
SAME = "Inst linux-image-6.1.0-49-cloud-amd64 [6.1.176-1] (6.1.176-2 Debian-Security:12/oldstable-security [amd64])\n"
EL9 = """Dependencies resolved.
================================================================================
 Package                   Architecture  Version               Repository   Size
================================================================================
Installing:
 kmod-nvidia-open-dkms     noarch        3:580.178.04-1.el9    gpu-bringup  13 M
Installing dependencies:
 kernel-core               x86_64        5.14.0-611.9.1.el9_7  baseos       18 M
 kernel-devel-matched      x86_64        5.14.0-611.9.1.el9_7  appstream   2.1 M
 kernel-headers            x86_64        5.14.0-611.9.1.el9_7  appstream   3.4 M
Removing:
 kernel-core               x86_64        5.14.0-427.13.1.el9_4 @baseos      60 M

Transaction Summary
================================================================================
"""
AMAZON = """Upgrading:
 kernel6.12                aarch64       6.12.55-74.119.amzn2023   amazonlinux   32 M
"""
EL8 = """Installing:
 kernel                    x86_64        4.18.0-553.83.1.el8_10  baseos       10 M
"""


@pytest.mark.parametrize(
    ("said", "running", "brought"),
    [
        (AZURE, "5.15.0-1089-azure", ["5.15.0-1098-azure"]),
        (AZURE, "5.15.0-1098-azure", []),
        (DEBIAN, "6.1.0-49-cloud-amd64", ["6.1.0-57-cloud-amd64"]),
        (UNSIGNED, "6.8.0-1044-oracle", ["6.8.0-1046-oracle"]),
        (SAME, "6.1.0-49-cloud-amd64", []),
        ("Inst linux-headers-6.1.0-57-cloud-amd64 (6.1.190-1 Debian [amd64])\n", "6.1.0-49-cloud-amd64", []),
        (EL9, "5.14.0-570.12.1.el9_6.x86_64", ["5.14.0-611.9.1.el9_7.x86_64"]),
        (EL9, "5.14.0-611.9.1.el9_7.x86_64", []),
        (AMAZON, "6.12.40-64.114.amzn2023.aarch64", ["6.12.55-74.119.amzn2023.aarch64"]),
        (EL8, "4.18.0-553.el8_10.x86_64", ["4.18.0-553.83.1.el8_10.x86_64"]),
        ("Nothing to do.\n", "5.14.0-570.12.1.el9_6.x86_64", []),
        ("", "6.1.0-49-cloud-amd64", []),
    ],
)  # fmt: skip
def test_another_kernel_in_a_transaction_is_found_and_the_running_one_is_none(
    said: str, running: str, brought: list[str]
) -> None:
    assert kernels_brought(said, running) == brought


def test_the_sentence_names_both_kernels_and_what_to_do() -> None:
    said = refusal_of_kernels(AZURE, "5.15.0-1089-azure")
    assert said is not None and "5.15.0-1098-azure would come, while 5.15.0-1089-azure runs" in said and "boot it" in said
    assert refusal_of_kernels(DEBIAN, "6.1.0-57-cloud-amd64") is None
