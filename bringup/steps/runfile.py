"""A driver that NVIDIA's .run installer has put beside the package manager: it goes before packages come, where the user accepts that."""

from __future__ import annotations

from bringup import versions
from bringup.steps import Change, edited
from bringup.steps.packages import is_driver_package
from bringup.survey import Survey, known, loaded_version
from bringup.target import Driver

UNINSTALLER = "/usr/bin/nvidia-uninstall"
GONE = ("config-files", "not-installed")  # dpkg's states of packages that have no files


def unowned_libraries(survey: Survey) -> list[str]:
    """Versions of libcuda on disk that no package has. ld.so takes the newest there is, so that one of these may be in the packages' place.

    While packages are half-way, files and package versions differ for another reason, and nothing is concluded.
    """
    there = [each for name, each in survey["packages"]["installed"].items() if is_driver_package(name)]
    half_way = any(each["state"] not in ("installed", *GONE) for each in there)
    if half_way or known(survey["packages"]["interrupted"]) is not False:
        return []
    packaged = {versions.upstream_of(each["version"]) for each in there if each["state"] not in GONE}
    return [each for each in survey["driver"]["libraries"] if each not in packaged]


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
    left = unowned_libraries(survey)
    if not survey["driver"]["runfile"] and not left:
        return None
    after = edited(survey)
    packaged = [each for each in survey["driver"]["libraries"] if each not in left]
    if survey["driver"]["runfile"]:
        for name in overwritten_packages(survey):
            del after["packages"]["installed"][name]
        packaged = []
        after["driver"]["runfile"] = False
        after["driver"]["module_version"] = after["driver"]["module_license"] = None
        for each in after["kernels"]:
            each["nvidia_module"] = False
    after["driver"]["libraries"] = packaged
    why = [f"{UNINSTALLER} is there: the driver was installed by a .run file"] if survey["driver"]["runfile"] else []
    why += [f"no package brought libcuda {' and '.join(left)}"] if left else []
    what = "run nvidia-uninstall" if survey["driver"]["runfile"] else "remove its libraries"
    return Change(", ".join(why), what, after)
