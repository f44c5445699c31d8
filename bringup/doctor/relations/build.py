"""Relations of building the module: its compiler, and whether a driver's source can know the kernel."""

from __future__ import annotations

import re
from datetime import date

from bringup import catalog, versions
from bringup.doctor.facts import DRIVER, Facts
from bringup.doctor.relations.kernel import numbers
from bringup.doctor.relations.registry import relation

# When kernels were released (kernel.org, tags of the mainline): a branch that had ended by then was never made to build against it.
RELEASED = {
    (5, 15): date(2021, 10, 31), (6, 1): date(2022, 12, 11), (6, 2): date(2023, 2, 19), (6, 3): date(2023, 4, 23),
    (6, 4): date(2023, 6, 25), (6, 5): date(2023, 8, 27), (6, 6): date(2023, 10, 29), (6, 7): date(2024, 1, 7),
    (6, 8): date(2024, 3, 10), (6, 9): date(2024, 5, 12), (6, 10): date(2024, 7, 14), (6, 11): date(2024, 9, 15),
    (6, 12): date(2024, 11, 17), (6, 13): date(2025, 1, 19), (6, 14): date(2025, 3, 24), (6, 15): date(2025, 5, 25),
    (6, 16): date(2025, 7, 27), (6, 17): date(2025, 9, 28),
}  # fmt: skip
# The first version of a branch that builds against a kernel, as threads say of builds that failed before.
FIRST = (
    ((6, 4), "525.116.04"),  # NVIDIA/open-gpu-kernel-modules#501
    ((6, 5), "525.147.05"),  # GoogleCloudPlatform/compute-gpu-installation#34, Frogging-Family/nvidia-all#200
    ((6, 15), "575.64"),  # LibreELEC/LibreELEC.tv#10154
    ((6, 17), "570.195.03"),  # Frogging-Family/nvidia-all#310
    ((7, 1), "580.159.04"),  # void-linux/void-packages#61087
)


@relation
def compiler_differs(facts: Facts) -> list[str]:
    text = facts.file("/proc/version") or facts.command(r"^uname -a") or ""
    built = re.search(r"\bgcc(?:-\d+|10-gcc)?\b[^0-9]*?(?:\([^)]*\)\s*)?(\d+)\.\d+", text) or re.search(r"gcc-(\d+)", text)
    have = facts.find(r"(\d+)\.\d+(?:\.\d+)?", facts.command(r"^gcc\b.*(?:-dump|--version|-v\b)") or "")
    if built and have and built[1] != have:
        return [f"the kernel was built with gcc {built[1]}, gcc here is {have}"]
    return []


@relation
def driver_too_old_for_the_kernel(facts: Facts) -> list[str]:
    kernel = facts.kernel or facts.find(r"^kernel:\s*(\d+\.\d+\S*)")
    version = facts.find(r"requested driver:\s*" + DRIVER) or facts.find(r"nvidia[/-]" + DRIVER, facts.command("^dkms") or "")
    version = version or facts.find(r"nvidia/" + DRIVER + r"/build") or next(iter(facts.driver_packages.values()), None)
    if not kernel or not version or not versions.is_driver(version):
        return []
    number, own = numbers(kernel)[:2], versions.branch_of(version)
    for since, first in FIRST:
        if number >= since and own == versions.branch_of(first) and not versions.at_least(version, first):
            return [f"driver {version} on kernel {kernel}: {first} is the first of its branch that builds there"]
    branch, released = catalog.load().branch(own), RELEASED.get(number[:2])  # type: ignore[arg-type]
    if branch and branch.eol and released and branch.eol < released:
        return [
            f"driver {version} on kernel {kernel}: branch {own} had ended ({branch.eol}) before that kernel came ({released})"
        ]
    return []
