"""The driver's packages: there, as wanted, and all of one version. A library or fabric manager of another one than the module ends CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bringup import versions
from bringup.steps import Change, version_locks
from bringup.steps.kernel_modules import LICENSES, source_version
from bringup.steps.packages import PREDICTED, alongside, missing, off_version, older, with_installed
from bringup.survey import Survey, installed
from bringup.target import Driver

# those that packages bring and the set does not name; nvidia-settings may be of another version
LIBRARY = re.compile(r"libcuda|libnvidia-")


def driver_packages(survey: Survey, driver: Driver) -> Change | None:
    lacking = missing(survey, driver.packages)
    wrong = off_version(survey, driver.versioned, driver.wanted)
    old = [] if driver.lowest is None else [each for each in older(survey, driver.versioned, driver.lowest) if each not in wrong]
    unsafe = [] if old or wrong else below_floor(survey, driver)
    other = to_remove(survey, driver)
    odd = odd_packages(survey, driver)
    if not lacking and not wrong and not old and not unsafe and not other and not odd:
        return None
    if survey["packages"]["dnf"]:
        version_locks.refuse_foreign(survey, driver)
    if not other and (kept := kept_version(survey, driver)):
        return _completed(survey, driver, lacking, odd, kept)
    after = with_installed(survey, lacking + wrong + old + unsafe + odd + _brought_along(survey, driver))
    for name in other:
        del after["packages"]["installed"][name]
    after["driver"]["module_version"] = PREDICTED
    after["driver"]["libraries"] = [PREDICTED]
    for each in after["kernels"]:
        each["nvidia_module"] = each["nvidia_module"] or each["release"] == survey["kernel"]
    after["driver"]["module_license"] = LICENSES[driver.kind]
    why = [f"{', '.join(lacking)} not installed"] if lacking else []
    why += [f"{', '.join(wrong)} not of {driver.wanted}"] if wrong else []
    why += [f"{', '.join(old)} older than {driver.lowest}, the first for these GPUs"] if old else []
    why += (
        [f"{', '.join(unsafe)} below {driver.floor}, which closes security holes, and a newer one is to be had"] if unsafe else []
    )
    differing = [each for each in odd if each not in wrong]
    why += [f"{', '.join(differing)} of another version than the rest"] if differing else []
    why += [f"{', '.join(other)} for the other kind of module"] if other else []
    return Change("; ".join(why), f"install the {driver.kind} driver {driver.wanted}", after)


def _brought_along(survey: Survey, driver: Driver) -> list[str]:
    """Libraries that come to another version with the packages that depend on them."""
    if driver.source != "nvidia":
        return []
    return [each for each in alongside(survey, driver.packages) if LIBRARY.match(each) and not _other_branch(each, driver)]


def _completed(survey: Survey, driver: Driver, lacking: list[str], odd: list[str], kept: str) -> Change:
    """The module stays as it is, so that nothing has to be loaded anew."""
    full = next(version for each in driver.packages if "dkms" in each and (version := installed(survey, each)))
    after = with_installed(survey, lacking + odd, full)
    after["driver"]["libraries"] = [kept]
    found = [f"{each} {versions.upstream_of(survey['packages']['installed'][each]['version'])}" for each in odd]
    why = [f"{', '.join(lacking)} not installed"] if lacking else []
    why += [f"{', '.join(found)} beside the driver {kept}"] if odd else []
    return Change("; ".join(why), f"bring all of it to {kept}", after)


def to_remove(survey: Survey, driver: Driver) -> list[str]:
    """Packages of the other kind of kernel module that are on the host: both kinds in one place would be one too many."""
    there = survey["packages"]["installed"]
    return [each for each in driver.unwanted if each in there and there[each]["state"] != "config-files"]


def below_floor(survey: Survey, driver: Driver) -> list[str]:
    """Packages below the branch's security floor, where apt's lists have a newer version of the branch. One without is only noted."""
    if driver.floor is None:
        return []
    low = older(survey, driver.versioned, driver.floor)
    have = versions.newest(version for each in low if (version := installed(survey, each)) is not None)
    offered = versions.newest(each for each in survey["packages"]["driver_candidates"] if versions.matches(each, driver.wanted))
    return low if have and offered and versions.key(offered) > versions.key(have) else []


def base_version(survey: Survey, driver: Driver) -> str | None:
    """The version that the set is of: that of the module's sources, else the newest of its packages; None without packages.

    The module's, since that one is loaded, or will be by the next boot: a library that an upgrade took along alone goes back to it.
    """
    source = source_version(survey, driver)
    if source is not None and versions.is_driver(source):
        return source
    found = (installed(survey, each) for each in driver.versioned)
    newest = versions.newest(each for each in found if each and versions.is_driver(each))
    return versions.upstream_of(newest) if newest else None


def odd_packages(survey: Survey, driver: Driver) -> list[str]:
    """Packages of another version than the set, which NVIDIA's repository can give at the set's: `apt` left to itself keeps them apart."""
    if driver.source != "nvidia":
        return []
    return [each for each in _differing(survey, driver) if each in driver.versioned or not _other_branch(each, driver)]


def foreign_packages(survey: Survey, driver: Driver) -> list[str]:
    """Differing ones that cannot be brought to the set's version: another branch's by name, or an archive's own."""
    odd = odd_packages(survey, driver)
    return [each for each in _differing(survey, driver) if each not in odd]


def _differing(survey: Survey, driver: Driver) -> Iterator[str]:
    base = base_version(survey, driver)
    if not driver.is_ours or base is None:
        return
    libraries = (each for each in alongside(survey, driver.packages) if LIBRARY.match(each))
    for name in (*driver.versioned, *libraries):
        version = installed(survey, name)
        if version and versions.is_driver(version) and versions.upstream_of(version) != base:
            yield name


def _other_branch(name: str, driver: Driver) -> bool:
    """`libnvidia-compute-535` where 580 is wanted."""
    found = re.search(r"-(\d{3})(-|$)", name)
    return found is not None and found.group(1) != driver.wanted.split(".")[0]


def kept_version(survey: Survey, driver: Driver) -> str | None:
    """The exact version to complete the set at: the module's, where that one is as wanted and stays. None: the whole set changes."""
    source = source_version(survey, driver)
    if driver.source != "nvidia" or source is None or not versions.matches(source, driver.wanted):
        return None
    floors = [each for each in (driver.floor, driver.lowest) if each is not None]
    return source if all(versions.at_least(source, each) for each in floors) else None


def version_to_ask_for(survey: Survey, driver: Driver, offered: Mapping[str, Sequence[str]]) -> str:
    """The version that is there, where the repository still has all of the set at it, and no more than parts of it lack or differ."""
    kept = kept_version(survey, driver)
    if kept is None or not (missing(survey, driver.versioned) or odd_packages(survey, driver)):
        return driver.wanted
    has = all(any(versions.upstream_of(each) == kept for each in offered.get(name, ())) for name in driver.versioned)
    return kept if has else driver.wanted
