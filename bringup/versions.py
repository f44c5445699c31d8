"""Driver versions: `580.159.04` is branch 580. Compared number by number, never as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

VERSION = re.compile(r"\d{3}(\.\d+){1,2}")


def branch_of(version: str) -> int:
    """580 of `580.159.04` or of a package's `580.159.04-1`. Raises ValueError when it is no driver version."""
    upstream = upstream_of(version)
    if not VERSION.fullmatch(upstream):
        raise ValueError(f"{version!r} is no driver version")
    return int(upstream.split(".")[0])


def branch_or_none(version: str | None) -> int | None:
    """580 of a driver's version; None where there is none, or what is there is none."""
    return branch_of(version) if version is not None and is_driver(version) else None


def upstream_of(package_version: str) -> str:
    """`580.159.04` of `580.159.04-1`, `3:580.159.04-1`, `580.159.04-0ubuntu1` or SUSE's `580.159.04_k6.4.0_150700.51-1`."""
    return re.split("[-_]", package_version.split(":")[-1])[0]


def key(version: str) -> tuple[int, ...]:
    """A sort key: (580, 159, 4) of `580.159.04-1`."""
    return _numbers(upstream_of(version))


def newest(versions: Iterable[str]) -> str | None:
    """The newest of versions with or without a distribution's revision, which decides between equal ones."""
    return max(versions, key=lambda each: (key(each), _numbers(each.partition("-")[2]), each), default=None)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))


def at_least(version: str, floor: str) -> bool:
    return key(version) >= key(floor)


def is_driver(version: str) -> bool:
    """Does a package's version say a driver's? Those of modules built for one kernel have the kernel's, nvlsm has its own."""
    return VERSION.fullmatch(upstream_of(version)) is not None


def matches(version: str, wanted: str) -> bool:
    """Is this package version of the wanted branch (`580`) or exact version (`580.159.04`)?"""
    try:
        branch = branch_of(version)
    except ValueError:
        return False
    return upstream_of(version) == wanted if "." in wanted else branch == int(wanted)
