"""Xids: errors that the driver writes to the kernel log, what they mean, and what to do."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.records import Source, SourceName, load_file


@dataclass(frozen=True, slots=True)
class Xid:
    """`fail`: a host that had it since its boot is not proven; `warn`: seen with broken programs on sound hardware, too."""

    code: int
    verdict: Literal["fail", "warn"]
    meaning: str
    action: str
    sources: tuple[SourceName, ...]


@dataclass(frozen=True, slots=True)
class XidsFile:
    as_of: date
    sources: Mapping[str, Source]
    xids: tuple[Xid, ...]


@functools.cache
def load_xids(folder: Path) -> XidsFile:
    return load_file(folder / "xids.yml", XidsFile)
