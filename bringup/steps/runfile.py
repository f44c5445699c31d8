"""A driver that NVIDIA's .run installer has put beside the package manager: it goes before packages come, where the user accepts that."""

from __future__ import annotations

from bringup import versions
from bringup.steps import Change, edited
from bringup.steps.packages import PREDICTED, is_driver_package
from bringup.survey import ModuleFile, Survey, known, loaded_version
from bringup.target import Driver

UNINSTALLER = "/usr/bin/nvidia-uninstall"
GONE = ("config-files", "not-installed")  # dpkg's states of packages that have no files


def unowned_libraries(survey: Survey) -> list[str]:
    """Versions of libcuda on disk that no package has. ld.so takes the newest there is, so that one of these may be in the packages' place.

    While packages are half-way, files and package versions differ for another reason, and nothing is concluded.
    """
    packaged = _packaged(survey)
    return [] if packaged is None else [each for each in survey["driver"]["libraries"] if each not in packaged]


def unowned_modules(survey: Survey) -> list[ModuleFile]:
    """Files of the running kernel's modules in the way of the packages' own: modprobe takes one of them, and a reboot does not change that.

    A second one that is not taken is in nobody's way.
    """
    files, taken = known(survey["driver"]["module_files"]) or [], known(survey["driver"]["module_version"])
    packaged = _packaged(survey)
    if not packaged or len(files) < 2 or taken is None or taken in packaged:
        return []
    return [each for each in files if each["version"] not in packaged and versions.is_driver(each["version"])]


def _packaged(survey: Survey) -> set[str] | None:
    """The driver's versions of which there are packages; None while some are half-way."""
    there = [each for name, each in survey["packages"]["installed"].items() if is_driver_package(name)]
    half_way = any(each["state"] not in ("installed", *GONE) for each in there)
    if half_way or survey["packages"]["interrupted"]:  # also where that could not be read; rpm has no such state
        return None
    found = {versions.upstream_of(each["version"]) for each in there if each["state"] not in GONE}
    return {each for each in found if versions.is_driver(each) or each == PREDICTED}


def overwritten_packages(survey: Survey) -> list[str]:
    """Driver packages beside a .run installation: each has files of the other's, so both go. Nothing of the toolkit's is among them."""
    if not survey["driver"]["runfile"]:
        return []
    return [
        name
        for name, each in survey["packages"]["installed"].items()
        if is_driver_package(name) and versions.is_driver(each["version"]) and each["state"] not in GONE
    ]


def runfile_version(survey: Survey) -> str:
    """What is loaded, or else on disk; empty where nothing tells it."""
    found = [loaded_version(survey), known(survey["driver"]["module_version"]), *unowned_libraries(survey)]
    return next((each for each in found if each), "")


def runfile_out(survey: Survey, driver: Driver) -> Change | None:
    """Run NVIDIA's own uninstaller, and remove the libraries that are left and no package's. The policy has asked for acceptance."""
    if not driver.is_ours:
        return None
    left, modules = unowned_libraries(survey), unowned_modules(survey)
    if not survey["driver"]["runfile"] and not left and not modules:
        return None
    after = edited(survey)
    files = [each for each in known(survey["driver"]["module_files"]) or [] if each not in modules]
    after["driver"]["module_files"] = files
    if modules:
        after["driver"]["module_version"] = next((each["version"] for each in files), None)
        for kernel in after["kernels"]:
            kernel["nvidia_module"] = bool(files) if kernel["release"] == survey["kernel"] else kernel["nvidia_module"]
    packaged = [each for each in survey["driver"]["libraries"] if each not in left]
    if survey["driver"]["runfile"]:
        for name in overwritten_packages(survey):
            del after["packages"]["installed"][name]
        packaged = []
        after["driver"]["runfile"] = False
        after["driver"]["module_version"] = after["driver"]["module_license"] = None
        after["driver"]["module_files"] = []
        for each in after["kernels"]:
            each["nvidia_module"] = False
    after["driver"]["libraries"] = packaged
    why = [f"{UNINSTALLER} is there: the driver was installed by a .run file"] if survey["driver"]["runfile"] else []
    why += [f"no package brought libcuda {' and '.join(left)}"] if left else []
    why += [f"modprobe takes {each['path']} ({each['version']}), which is not the packages'" for each in modules]
    left_over = " and ".join([*(["libraries"] if left else []), *(["modules"] if modules else [])])
    what = "run nvidia-uninstall" if survey["driver"]["runfile"] else f"remove its {left_over}"
    return Change(", ".join(why), what, after)
