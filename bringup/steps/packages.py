"""Steps of the package manager: interrupted work, repositories, packages, holds."""

from __future__ import annotations

import base64

from bringup import versions
from bringup.openpgp import NotAKey, fingerprints
from bringup.steps import Change, edited
from bringup.steps.kernel_modules import LICENSES
from bringup.survey import Package, Survey, installed, unreadable
from bringup.target import Repository, Target

# dpkg's states of what --configure finishes; of a package with a kernel module only while nothing has failed: it may not compile again
FINISHED = ("unpacked", "half-configured", "triggers-awaited", "triggers-pending")
PREDICTED = "predicted"  # stands for a version that only the repository's index knows


def package_manager(survey: Survey) -> Change | None:
    """An interrupted dpkg is finished first: apt refuses everything until then."""
    found = survey["packages"]["interrupted"]
    if unreadable(found) is None and not found:
        return None
    after = edited(survey)
    after["packages"]["interrupted"] = False
    for name, each in after["packages"]["installed"].items():
        if each["state"] in FINISHED and (each["state"] != "half-configured" or "dkms" not in name):
            each["state"] = "installed"
            _module_built(after, name, each["version"])
    return Change("dpkg was interrupted", "dpkg --configure -a", after)


def _module_built(after: Survey, name: str, version: str) -> None:
    """A driver's module is compiled when its package is configured."""
    if after["driver"]["module_version"] is None and "dkms" in name and is_driver_package(name):
        after["driver"]["module_version"] = versions.upstream_of(version)
        after["driver"]["module_license"] = LICENSES["open" if "open" in name else "proprietary"]
        for kernel in after["kernels"]:
            kernel["nvidia_module"] = kernel["nvidia_module"] or kernel["headers"]


def repository(survey: Survey, wanted: Repository) -> Change | None:
    """The sources file has our text and the keyring holds the right key."""
    why = []
    if survey["packages"]["repositories"].get(wanted.sources_file) != wanted.sources_text:
        why.append(f"{wanted.sources_file} is not as it shall be")
    if not _has_key(survey, wanted):
        why.append(f"{wanted.keyring} does not hold the key {wanted.fingerprint}")
    elif wanted.family != "apt" and not _in_rpm(survey, wanted):
        why.append(f"rpm does not know the key {wanted.fingerprint}")
    if not why:
        return None
    after = edited(survey)
    after["packages"]["repositories"][wanted.sources_file] = wanted.sources_text
    after["packages"]["keyrings"][wanted.keyring] = PREDICTED
    return Change(" and ".join(why), f"add the repository {wanted.url}", after)


def _has_key(survey: Survey, wanted: Repository) -> bool:
    found = survey["packages"]["keyrings"].get(wanted.keyring)
    if found == PREDICTED:
        return True
    try:
        return found is not None and fingerprints(base64.b64decode(found)) == (wanted.fingerprint,)
    except (NotAKey, ValueError):
        return False


def _in_rpm(survey: Survey, wanted: Repository) -> bool:
    """rpm's own keyring names keys by the end of their fingerprint."""
    if survey["packages"]["keyrings"].get(wanted.keyring) == PREDICTED:
        return True
    known = [name.removeprefix("gpg-pubkey-") for name in survey["packages"]["installed"] if name.startswith("gpg-pubkey-")]
    return any(each and wanted.fingerprint.lower().endswith(each) for each in known)


def key_package(wanted: Repository) -> str:
    """What rpm calls this key among its packages."""
    return f"gpg-pubkey-{wanted.fingerprint[-8:].lower()}"


def missing(survey: Survey, packages: tuple[str, ...]) -> list[str]:
    """Those that are not installed, or only half."""
    return [each for each in packages if installed(survey, each) is None]


def with_installed(survey: Survey, packages: list[str], version: str = PREDICTED) -> Survey:
    after = edited(survey)
    for each in packages:
        after["packages"]["installed"][each] = Package(version=version, state="installed", held=False)
    return after


def off_version(survey: Survey, packages: tuple[str, ...], wanted: str) -> list[str]:
    """Installed packages with a driver's version that is not of the wanted branch or version."""
    found = [(each, installed(survey, each)) for each in packages]
    return [name for name, version in found if version and versions.is_driver(version) and not versions.matches(version, wanted)]


def to_hold(survey: Survey, target: Target) -> tuple[str, ...]:
    """What is installed of: the driver set and the libraries that it brings, the toolkit and, by choice, kernels and headers."""
    there = survey["packages"]["installed"]
    found: list[str] = []
    if target.driver and target.driver.hold:
        versions_ = {there[each]["version"] for each in target.driver.packages if each in there}
        found += [
            name
            for name, each in there.items()
            if name in target.driver.packages or (each["version"] in versions_ and is_driver_package(name))
        ]
    if target.driver and target.driver.hold_kernel:
        found += [
            name
            for name, each in there.items()
            if name.startswith(("linux-image-", "linux-headers-", "linux-modules-"))
            or (name.startswith("kernel") and each["version"].split(":")[-1] not in name)  # not by its full name too
        ]
    if target.toolkit and target.toolkit.hold:
        found += [name for name in there if name in target.toolkit.packages]
    return tuple(dict.fromkeys(found))


def to_release(survey: Survey, target: Target) -> tuple[str, ...]:
    """What we have held, and what is by now not to be held: kernels after a change of gpu_hold_packages. Others' holds are theirs."""
    if target.driver and not target.driver.is_ours:  # a driver that is kept as it is, and so are its holds
        return ()
    there, wanted = survey["packages"]["installed"], to_hold(survey, target)
    ours = dict.fromkeys(survey["packages"]["held_by_us"])
    return tuple(each for each in ours if each in there and there[each]["held"] and each not in wanted)


def alongside(survey: Survey, packages: tuple[str, ...]) -> tuple[str, ...]:
    """What is installed of the driver set beyond these packages: it changes its version with them, since they ask for exactly their own."""
    there = survey["packages"]["installed"]
    return tuple(
        name
        for name, each in there.items()
        if name not in packages and is_driver_package(name) and versions.is_driver(each["version"])
    )


def is_driver_package(name: str) -> bool:
    """By its name: of the driver set, libraries included. What is held and what undo removes must be the same."""
    return "nvidia" in name or name.startswith(("libcuda", "libnv", "cuda-drivers"))


def half_configured(survey: Survey, target: Target) -> list[str]:
    """Packages of the driver set that are ours to remove and were left half-way: their module may never compile."""
    if target.driver is None or not target.driver.is_ours:
        return []
    ours = {*survey["packages"]["ours"], *target.driver.packages}
    there = survey["packages"]["installed"]
    return [
        name
        for name, each in there.items()
        if each["state"] in ("half-configured", "half-installed") and is_driver_package(name) and name in ours
    ]


def older(survey: Survey, packages: tuple[str, ...], floor: str) -> list[str]:
    """Installed packages with a driver's version below the floor."""
    found = [(each, installed(survey, each)) for each in packages]
    return [name for name, version in found if version and versions.is_driver(version) and not versions.at_least(version, floor)]


def unheld(survey: Survey, packages: tuple[str, ...]) -> list[str]:
    """Those of the packages that are installed and not held."""
    now = survey["packages"]["installed"]
    return [each for each in packages if each in now and now[each]["state"] == "installed" and not now[each]["held"]]


def holds(survey: Survey, target: Target) -> Change | None:
    """What is installed of the set is held, so that no unattended upgrade splits it; what we held and should not is released."""
    free, released = unheld(survey, to_hold(survey, target)), to_release(survey, target)
    if not free and not released:
        return None
    after = edited(survey)
    for each in (*free, *released):
        after["packages"]["installed"][each]["held"] = each in free
    after["packages"]["held_by_us"] = [*(each for each in survey["packages"]["held_by_us"] if each not in released), *free]
    why = [f"{', '.join(free)} may be upgraded apart from the rest"] if free else []
    why += [f"{', '.join(released)} held by us, which gpu_hold_packages no longer asks for"] if released else []
    what = [*(["hold the packages"] if free else []), *(["release them"] if released else [])]
    return Change("; ".join(why), ", ".join(what), after)
