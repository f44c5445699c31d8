"""The causes: curated data, read from bringup/catalog/causes/*.yml, one file a family."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bringup.catalog.records import CatalogError, load_file

FOLDER = Path(__file__).parents[1] / "catalog" / "causes"
# of causes that have only a message in common with others, the first is shown
FAMILIES = (
    "apt", "locks", "driver", "kernel", "fabric", "cgroup", "containers", "variants", "cdi", "daemon", "docker", "compat", "pulls",
    "limits", "init", "health", "mig", "nccl", "distro", "fleet",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause. Signs are written as bringup.doctor.sign has it.

    says: shows this cause and no other.        shared: a message that several causes have; alone it shows little.
    facts: as good as `says`, without a message.  hints: speak for it only beside another sign.
    against: speak against it.                   explains: causes that are only its consequences, and not shown beside it.
    """

    id: str
    title: str
    why: str
    ours: str
    by_hand: tuple[str, ...]
    says: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    look: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    family: str = ""

    @property
    def signs(self) -> tuple[str, ...]:
        return (*self.says, *self.shared, *self.facts, *self.hints, *self.against)


@dataclass(frozen=True, slots=True)
class CausesFile:
    family: str
    about: str
    causes: tuple[Cause, ...]


@functools.cache
def load_families() -> tuple[CausesFile, ...]:
    """All families. Raises CatalogError for a file that is wrong."""
    return tuple(load_file(FOLDER / f"{family}.yml", CausesFile) for family in FAMILIES)


@functools.cache
def load_causes() -> Mapping[str, Cause]:
    """By id, in the order of the files."""
    found: dict[str, Cause] = {}
    for family in load_families():
        for cause in family.causes:
            if cause.id in found:
                raise CatalogError(f"{family.family}: the cause {cause.id} is there twice")
            found[cause.id] = cause
    return found
