"""Driver branches: when they live, what they run, which kernel modules they offer, below what they are unsafe."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.records import Month, Source, SourceName, load_file


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch: 580 is everything that begins with "580."."""

    number: int
    kind: Literal["lts", "production", "new-feature", "development"]
    begins: Month | None = field(metadata={"key": "first"})
    ends: Month | None = field(metadata={"key": "eol"})
    newest: str
    status: Literal["supported", "superseded", "eol"]
    cuda: str
    sources: tuple[SourceName, ...]
    first_version: str | None = None  # of the first production release, where it is known
    recalled: tuple[Literal["first", "eol", "newest"], ...] = ()

    @property
    def first(self) -> date | None:
        return self.begins.first_day if self.begins else None

    @property
    def eol(self) -> date | None:
        return self.ends.last_day if self.ends else None

    def is_supported(self, today: date) -> bool | None:
        """Whether NVIDIA still fixes it; None where its end is not known."""
        if self.eol is not None:
            return today <= self.eol
        return {"supported": True, "superseded": None, "eol": False}[self.status]


@dataclass(frozen=True, slots=True)
class ModuleRules:
    """The branches at which the kinds of kernel module change."""

    open_since: int
    open_default_since: int
    proprietary_before: int

    def offers(self, branch: int, module: Literal["open", "proprietary"]) -> bool:
        return branch >= self.open_since if module == "open" else branch < self.proprietary_before


@dataclass(frozen=True, slots=True)
class SecurityFloor:
    branch: int
    version: str
    sources: tuple[SourceName, ...]
    open_issues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DriversFile:
    as_of: date
    sources: Mapping[str, Source]
    module_rules: ModuleRules
    security_floors: tuple[SecurityFloor, ...]
    branches: tuple[Branch, ...]


@functools.cache
def load_drivers(folder: Path) -> DriversFile:
    return load_file(folder / "drivers.yml", DriversFile)
