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


def upstream_of(package_version: str) -> str:
    """`580.159.04` of `580.159.04-1`, `3:580.159.04-1` or `580.159.04-0ubuntu1`."""
    return package_version.split(":")[-1].split("-")[0]


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


def matches(version: str, wanted: str) -> bool:
    """Is this package version of the wanted branch (`580`) or exact version (`580.159.04`)?"""
    try:
        branch = branch_of(version)
    except ValueError:
        return False
    return upstream_of(version) == wanted if "." in wanted else branch == int(wanted)
