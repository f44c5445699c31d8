"""Xids: errors that the driver writes to the kernel log, what they mean, and what to do."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.records import Source, SourceName, load_file

RECALLED = "memory"  # the source of what was looked up nowhere


@dataclass(frozen=True, slots=True)
class Xid:
    """`fail`: a host that had it since its boot is not proven; `warn`: seen with broken programs on sound hardware, too.

    What is only recalled warns, whatever its verdict.
    """

    code: int
    verdict: Literal["fail", "warn"]
    meaning: str
    action: str
    sources: tuple[SourceName, ...]

    @property
    def is_broken_hardware(self) -> bool:
        return self.verdict == "fail" and self.sources != (RECALLED,)


@dataclass(frozen=True, slots=True)
class XidsFile:
    as_of: date
    sources: Mapping[str, Source]
    xids: tuple[Xid, ...]


@functools.cache
def load_xids(folder: Path) -> XidsFile:
    return load_file(folder / "xids.yml", XidsFile)
