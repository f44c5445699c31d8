"""Which kernels have the driver's module: the one that runs needs it now, and the one that boots next needs it then."""

from __future__ import annotations

import re

from bringup import versions
from bringup.steps import Change, Skip, edited
from bringup.survey import Kernel, Survey, installed, known
from bringup.target import Driver

LICENSES = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}  # as modinfo says of each kind


def next_kernel(survey: Survey) -> Kernel | None:
    """What a boot loader takes of itself: the highest version that has an image. None where there is none (a container, a direct boot)."""
    bootable = [each for each in survey["kernels"] if each["image"]]
    return max(bootable, key=lambda each: _numbers(each["release"]), default=None)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", release))


def unbuilt(survey: Survey) -> list[str]:
    """Of the running and the next kernel those that have headers and no module."""
    following = next_kernel(survey)
    names = dict.fromkeys((survey["kernel"], *([following["release"]] if following else [])))
    kernels = {each["release"]: each for each in survey["kernels"]}
    return [name for name in names if name in kernels and kernels[name]["headers"] and not kernels[name]["nvidia_module"]]


def outdated(survey: Survey, driver: Driver) -> str | None:
    """The version of the running kernel's only module where it is older than what DKMS would build: an upgrade whose build failed left
    it, and no reboot makes it fit its libraries. Of several modules, steps/runfile.py has the say."""
    module, source = known(survey["driver"]["module_version"]), source_version(survey, driver)
    if module is None or source is None or not versions.is_driver(module) or not versions.is_driver(source):
        return None
    if versions.at_least(module, source):
        return None
    has_headers = any(each["release"] == survey["kernel"] and each["headers"] for each in survey["kernels"])
    return module if has_headers and len(known(survey["driver"]["module_files"]) or []) == 1 else None


def source_version(survey: Survey, driver: Driver) -> str | None:
    """The version of the sources that DKMS builds from, which lie in /usr/src/NAME-VERSION; None where they are not installed."""
    found = (installed(survey, each) for each in driver.packages if "dkms" in each)
    return next((versions.upstream_of(each) for each in found if each), None)


def kernel_modules(survey: Survey, driver: Driver) -> Change | Skip | None:
    """Build the module for kernels that lack it: DKMS may have built it for another one only, and apt was content with that."""
    names = to_build(survey, driver)
    if not names:
        problem = lacks_module(survey, driver)
        return Skip(problem) if problem else None
    after = edited(survey)
    for each in after["kernels"]:
        each["nvidia_module"] = each["nvidia_module"] or each["release"] in names
    source = source_version(survey, driver)
    if survey["kernel"] in names:  # which can then be loaded
        after["driver"]["module_version"] = source
        after["driver"]["module_license"] = LICENSES[driver.kind]
    lacking, old = unbuilt(survey), outdated(survey, driver)
    why = [f"{', '.join(lacking)} without nvidia module"] if lacking else []
    why += [f"the module of {survey['kernel']} is of {old}, and its packages are of {source}"] if old else []
    return Change("; ".join(why), f"build it for {', '.join(names)} with DKMS", after)


def to_build(survey: Survey, driver: Driver) -> list[str]:
    """The kernels to build the module for."""
    if not is_built_here(driver):
        return []
    return list(dict.fromkeys([*([survey["kernel"]] if outdated(survey, driver) else []), *unbuilt(survey)]))


def is_built_here(driver: Driver) -> bool:
    """By DKMS; else the modules are built elsewhere, a package of their own for each kernel."""
    return any("dkms" in each for each in driver.packages)


def lacks_module(survey: Survey, driver: Driver) -> str | None:
    """Why the running kernel can have no module, and what would help; None where it has one, headers to build one with, or where the
    driver is not ours."""
    kernels = {each["release"]: each for each in survey["kernels"]}
    running = kernels.get(survey["kernel"])
    has = known(survey["driver"]["module_version"]) is not None or (running is not None and running["nvidia_module"])
    built = is_built_here(driver)
    if has or not driver.packages or (built and running is not None and running["headers"]):
        return None
    following = next_kernel(survey)
    reason, way = (
        f"kernel {survey['kernel']} has no headers, so no nvidia module can be built for it",
        "install its headers, or boot",
    )
    if not built:
        reason, way = f"none of the driver's packages has an nvidia module for kernel {survey['kernel']}", "boot"
    if following is None or following["release"] == survey["kernel"]:
        return f"{reason}: {way} the distribution's own kernel"
    if following["nvidia_module"]:
        return f"{reason}: boot {following['release']}, which has one, and run this again"
    return f"{reason}: boot the distribution's newest kernel, and run this again"
