"""Curated images: what is inside them, and how large they are."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.records import Source, Sourced, SourceName, load_file


@dataclass(frozen=True, slots=True)
class Image:
    """One image. `digest` is that of the index; null until a registry has confirmed it.

    `sm`: machine code in torch, as numbers (90 is sm_90); None: not looked up. `ptx`: the same of PTX (120 is compute_120).
    `compat`: None: no forward compatibility package of CUDA inside; else the lowest drivers that it is stated for, () where none is.
    """

    name: str
    reference: str
    digest: str | None
    family: Literal["pytorch", "ngc", "cuda", "own"]
    flavour: Literal["base", "runtime", "devel"]
    torch: str | None
    cuda: str
    sm: tuple[int, ...] | None
    architectures: tuple[Literal["x86_64", "aarch64"], ...]
    sources: tuple[SourceName, ...]
    ptx: tuple[int, ...] = ()
    compat: tuple[str, ...] | None = None
    python: str | None = None
    compressed_bytes: int | None = None
    unpacked_gb: Sourced[float] | None = None
    unpack_ratio: float | None = None
    recalled: tuple[Literal["architectures", "python", "torch"], ...] = ()
    note: str | None = None

    @property
    def pinned(self) -> str:
        """What to pull: by digest where one is known."""
        return f"{self.reference}@{self.digest}" if self.digest else self.reference


@dataclass(frozen=True, slots=True)
class ImagesFile:
    as_of: date
    sources: Mapping[str, Source]
    default_unpack_ratio: Sourced[float]
    images: tuple[Image, ...]


@functools.cache
def load_images(folder: Path) -> ImagesFile:
    return load_file(folder / "images.yml", ImagesFile)
