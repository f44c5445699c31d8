"""CUDA toolkits: the drivers that they need and the GPUs that they make code for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from bringup.catalog.records import Source, SourceName, load_file


@dataclass(frozen=True, slots=True)
class Toolkit:
    """One minor version ("13.0"); `releases` maps "13.0.2" to the driver that it was made with."""

    version: str
    driver_minor: str
    compute_capability_min: str
    compute_capability_max: str
    sm: tuple[int, ...] | None
    releases: Mapping[str, str | None]
    sources: tuple[SourceName, ...]

    @property
    def driver_full(self) -> str | None:
        """The driver of its first release: from here on everything works, PTX included; None where none was published."""
        return next(iter(self.releases.values()), None)


@dataclass(frozen=True, slots=True)
class CudaFile:
    as_of: date
    sources: Mapping[str, Source]
    toolkits: tuple[Toolkit, ...]


@functools.cache
def load_cuda(folder: Path) -> CudaFile:
    return load_file(folder / "cuda.yml", CudaFile)
