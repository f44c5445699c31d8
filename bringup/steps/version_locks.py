"""What dnf's version locks allow, and which of them are ours to lift. A foreign lock is shown and never broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bringup import version_locks, versions
from bringup.errors import HostError
from bringup.survey import Survey, known
from bringup.target import Driver


def locks(survey: Survey) -> list[str]:
    """The lines of the list; [] also where there is no plugin, or it could not be read."""
    dnf = survey["packages"]["dnf"]
    return (known(dnf["version_locks"]) or []) if dnf else []


def ours(survey: Survey) -> list[str]:
    """Lines that this project wrote: of packages that it noted as held by it, just as the plugin writes them."""
    found = []
    for each in locks(survey):
        lock = version_locks.parse(each)
        exact = lock.version is not None and ":" in lock.version and not lock.excludes and "*" not in lock.version
        if exact and lock.name in survey["packages"]["held_by_us"]:
            found.append(each)
    return found


def to_lift(survey: Survey, packages: Iterable[str]) -> list[str]:
    """Our lines about these packages and about the libraries that have their versions: all of them change together."""
    installed = survey["packages"]["installed"]
    names = list(packages)
    together = {installed[each]["version"] for each in names if each in installed}
    parsed = [(each, version_locks.parse(each)) for each in ours(survey)]
    return [each for each, lock in parsed if lock.name in names or lock.version in together]


def foreign(survey: Survey) -> list[str]:
    kept = ours(survey)
    return [each for each in locks(survey) if each not in kept]


def allowed(survey: Survey, offered: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What a source offers, without the versions that locks of others rule out."""
    others = foreign(survey)
    return {name: [each for each in found if version_locks.allows(others, name, each)] for name, found in offered.items()}


def refuse_foreign(survey: Survey, driver: Driver) -> None:
    """Raises HostError where a lock of somebody else's keeps a package of the driver at another branch or version than the wanted one."""
    for entry in foreign(survey):
        lock = version_locks.parse(entry)
        about = [each for each in driver.packages if each not in driver.others and version_locks.is_about(entry, each)]
        number = (lock.version or "").split("-")[0]
        other = versions.is_driver(number) and not versions.matches(number, driver.wanted)
        if about and (lock.version is None if lock.excludes else other):
            raise HostError(
                f"dnf's version lock {entry} is none of ours, and keeps {about[0]} from {driver.wanted}: "
                f"take it away (dnf versionlock delete '{entry}'), or set gpu_driver_branch to what it allows"
            )
