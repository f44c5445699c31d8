"""Performance floors: what was measured on a board, and how far below it a result still passes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.records import Source, Sourced, load_file


@dataclass(frozen=True, slots=True)
class Floor:
    """One measured value of a board; the source of `value` says on what it was measured, and when."""

    name: str
    board: str
    subdevices: tuple[str, ...]
    metric: str
    value: Sourced[float]
    unit: Literal["TFLOP/s", "GB/s", "us", "ms"]
    better: Literal["higher", "lower"]
    tolerance: float  # a fraction of the value
    method: str
    link: str | None = None  # None: a single GPU
    gpus: int = 1

    @property
    def limit(self) -> float:
        """The worst result that passes, in `unit`."""
        return self.value.value * (1 - self.tolerance if self.better == "higher" else 1 + self.tolerance)


@dataclass(frozen=True, slots=True)
class FloorsFile:
    as_of: date
    sources: Mapping[str, Source]
    floors: tuple[Floor, ...]


@functools.cache
def load_floors(folder: Path) -> FloorsFile:
    return load_file(folder / "floors.yml", FloorsFile)
