"""Lines of dnf's versionlock list, which keep a package at a version: `nvidia-driver-cuda-3:580.159.04-1.el9.*`, `!excluded-1.0`.

The plugin takes a line for NAME-EPOCH:VERSION-RELEASE.ARCH, or a part of that, with wildcards (dnf-plugins-core, versionlock(8)).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

ARCH = re.compile(r"\.(\*|x86_64|aarch64|noarch)$")
VERSION = re.compile(r"\d\S*")


class Lock(NamedTuple):
    """`version`: patterns of EPOCH:VERSION-RELEASE or a part of it; None: any."""

    excludes: bool
    name: str
    version: str | None


def entries(lines: Iterable[str]) -> list[str]:
    """The lines that lock something: without comments and blank ones."""
    return [each.strip() for each in lines if each.strip() and not each.startswith("#")]


def spec(name: str, version: str) -> str:
    """A package at one version as dnf takes it: `name-epoch:version-release`."""
    return f"{name}-{version if ':' in version else f'0:{version}'}"


def parse(entry: str) -> Lock:
    """The version begins at the last dash but one, or at the last, where something like a version follows."""
    bare = entry.removeprefix("!")
    for dashes in (2, 1):
        name, *rest = bare.rsplit("-", dashes)
        if len(rest) == dashes and VERSION.fullmatch(rest[0]):
            version = "-".join(rest)
            return Lock(entry.startswith("!"), name, ARCH.sub("", version) if dashes == 2 else version)
    return Lock(entry.startswith("!"), ARCH.sub("", bare), None)


def is_about(entry: str, name: str) -> bool:
    """Does this line say anything about the package?"""
    return fnmatchcase(name, parse(entry).name)


def covers(entry: str, name: str, version: str) -> bool:
    """Does this line lock the package at this very version (`epoch:version-release`)?"""
    lock = parse(entry)
    return not lock.excludes and lock.version is not None and _fits(lock, name, version)


def allows(locks: Iterable[str], name: str, version: str) -> bool:
    """May the package come at this version, by the lines about it? A line that names no version locks nothing."""
    about = [lock for each in locks if fnmatchcase(name, (lock := parse(each)).name)]
    if any(lock.excludes and _fits(lock, name, version) for lock in about):
        return False
    locking = [lock for lock in about if not lock.excludes and lock.version is not None]
    return not locking or any(_fits(lock, name, version) for lock in locking)


def _fits(lock: Lock, name: str, version: str) -> bool:
    epoch, _, plain = (version if ":" in version else f"0:{version}").partition(":")
    number = plain.partition("-")[0]
    whole = (f"{epoch}:{plain}", plain, f"{epoch}:{number}", number)
    return fnmatchcase(name, lock.name) and (lock.version is None or any(fnmatchcase(each, lock.version) for each in whole))
