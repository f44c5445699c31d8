"""Where the driver comes from: what is there is kept, and two sources never mix, since their files overwrite each other."""

from __future__ import annotations

import re
from typing import Literal

from bringup.catalog import Catalog, Distro
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.steps.runfile import UNINSTALLER, runfile_version, unowned_libraries, unowned_modules
from bringup.survey import Survey, known, loaded_version

Source = Literal["nvidia", "distro"]
# where a driver that is there came from; `other`: packages that neither NVIDIA's repository nor our list of the distribution's has
# (Ubuntu's desktop flavour, RPM Fusion); `elsewhere`: no package brought it (an image, a .run file)
Present = Literal["nvidia", "distro", "other", "elsewhere"]

# the kernel module, and nvidia-smi or libcuda beside it: what makes a driver of packages
DRIVER_PACKAGE = re.compile(
    r"(linux-(modules|objects|signatures)-nvidia|a?kmod-nvidia|nvidia-(tesla-)?(\d+-)?(open-)?kernel-(open-|support-)?dkms|nvidia-dkms|"
    r"nvidia-headless|nvidia-(tesla-|\d+-)*driver|nvidia-open|nvidia-utils|nvidia-x11-drv|cuda-drivers|dkms-nvidia|libnvidia-compute|"
    r"nvidia-(open-)?driver-G0\d|nvidia-compute-G0\d|nvidia-compute-utils)"
)
NOT_A_DRIVER = re.compile(r"nvidia-driver-(pinning|local-repo|assistant)|nvidia-(open-)?kernel-(common|support|source)")
UBUNTUS_OWN = re.compile(r"-0ubuntu[\d.]*\.\d+")  # 580.159.03-0ubuntu0.24.04.1; NVIDIA's end in -0ubuntu1 or -1ubuntu1


def driver_packages(survey: Survey) -> dict[str, str]:
    """Driver packages that are on the host, half installed ones too: name -> version."""
    return {
        name: found["version"]
        for name, found in survey["packages"]["installed"].items()
        if found["state"] != "config-files" and DRIVER_PACKAGE.match(name) and not NOT_A_DRIVER.match(name)
    }


def present_source(survey: Survey, catalog: Catalog, distro: Distro) -> Present | None:
    """Where the driver that is on the host came from; None: there is none."""
    there = driver_packages(survey)
    if there:
        own = {
            name
            for each in distro.own_drivers
            for kind in ("open", "proprietary")
            for name in each.packages(kind, survey["kernel"])
        }
        nvidia = {
            name
            for branch in catalog.branches
            for kind in ("open", "proprietary")
            if (found := distro.packages(branch.number, kind))
            for name in (
                *found.driver,
                "nvidia-open",
                f"nvidia-open-{branch.number}",
                "cuda-drivers",
                f"cuda-drivers-{branch.number}",
            )
        }
        ubuntus = {name for name, version in there.items() if UBUNTUS_OWN.search(version)}
        if (there.keys() - ubuntus) & (nvidia - own):  # also where leftovers of another source are beside them
            return "nvidia"
        return "distro" if there.keys() & own else "other"
    return "elsewhere" if loaded_version(survey) is not None or survey["driver"]["runfile"] else None


def present_branch(survey: Survey) -> str | None:
    """Version of the driver on the host: loaded, else installed; None where there is none or it cannot be told."""
    loaded = loaded_version(survey) or known(survey["driver"]["module_version"])
    if loaded is not None:
        return loaded
    versions = [version for version in driver_packages(survey).values() if re.match(r"(\d+:)?\d{3}\.\d", version)]
    return versions[0] if versions else None


def is_adopted(survey: Survey, settings: Settings, present: Present | None) -> bool:
    """Used as it is and never touched: by wish, or since it runs and its packages are not ours to change."""
    if settings.driver_source == "preinstalled":
        return True
    foreign = present in ("other", "elsewhere") and loaded_version(survey) is not None and not survey["driver"]["runfile"]
    return settings.driver_source == "auto" and settings.driver_branch == "auto" and foreign


def choose_source(survey: Survey, settings: Settings, distro: Distro, present: Present | None) -> Source:
    """For a driver that this project manages. Raises Refused for a change of source that the user did not accept."""
    if survey["driver"]["runfile"] and "remove-runfile" not in settings.accept:
        which = f"driver {version}" if (version := runfile_version(survey)) else "the driver"
        reason = f"{which} was installed by a .run file ({UNINSTALLER} is there), and packages would overwrite half of it"
        way = "run nvidia-uninstall and then this again, set gpu_driver_source to preinstalled to keep it"
        raise Refused("runfile", reason, way, "remove-runfile")
    if survey["driver"]["runfile"] and present == "elsewhere":  # it goes first, as accepted
        present = None
    signed = any(each.signed for each in distro.own_drivers)
    wanted: Source
    if settings.driver_source != "auto":
        wanted = "distro" if settings.driver_source == "distro" else "nvidia"
    elif present == "distro" or (present is None and known(survey["secure_boot"]) and signed):
        wanted = "distro"
    else:
        wanted = "nvidia"
    if present not in (None, wanted) and "change-source" not in settings.accept:
        raise _change_of_source(survey, settings, distro, wanted, present)
    if (left := unowned_libraries(survey)) and "remove-runfile" not in settings.accept:
        reason = f"libcuda {' and '.join(left)} is on this host, no package brought it, and programs may load it"
        way = "remove what is left of that driver, set gpu_driver_source to preinstalled to keep it"
        raise Refused("unowned-libraries", reason, way, "remove-runfile")
    if (modules := unowned_modules(survey)) and "remove-runfile" not in settings.accept:
        found = " and ".join(f"{each['path']} ({each['version']})" for each in modules)
        reason = f"modprobe takes {found} before the module of the driver's packages, and a reboot will not change that"
        raise Refused("two-modules", reason, "remove it (`dpkg -S` or `rpm -qf` tell whether a package has it)", "remove-runfile")
    return wanted


def _change_of_source(survey: Survey, settings: Settings, distro: Distro, wanted: Source, present: Present | None) -> Refused:
    packages = driver_packages(survey)
    name = min(packages, default="")
    there = {
        "distro": f"comes from {distro.name}'s own archive ({name} {packages.get(name, '')})",
        "nvidia": f"comes from NVIDIA's repository ({name} {packages.get(name, '')})",
        "other": f"comes from packages that are neither NVIDIA's nor known here ({name} {packages.get(name, '')})",
        "elsewhere": f"({loaded_version(survey)}) was brought by no package",
    }[str(present)]
    cause = f"gpu_driver_source is {settings.driver_source}"
    if settings.driver_source == "auto":
        cause = f"branch {settings.driver_branch} was asked for" if settings.driver_branch != "auto" else "it is not loaded"
    way = f"set gpu_driver_source to {'auto' if present in ('nvidia', 'distro') else 'preinstalled'} to keep it, remove it first"
    return Refused("change-source", f"the driver on this host {there}, and {cause}", way, "change-source")
