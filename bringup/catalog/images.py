"""Curated images: what is inside them, and how large they are."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.drivers import Branch
from bringup.catalog.gpus import Gpu
from bringup.catalog.records import Source, Sourced, SourceName, load_file


@dataclass(frozen=True, slots=True)
class Image:
    """One image. `digest` is that of the index; null until a registry has confirmed it."""

    name: str
    reference: str
    digest: str | None
    family: Literal["pytorch", "ngc", "cuda"]
    flavour: Literal["base", "runtime", "devel"]
    torch: str | None
    cuda: str
    sm: tuple[int, ...] | None
    architectures: tuple[Literal["x86_64", "aarch64"], ...]
    sources: tuple[SourceName, ...]
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

    def has_code_for(self, gpu: Gpu) -> bool | None:
        """Machine code of sm_XY runs on X.Z with Z >= Y, never across major versions; None where the list is not known."""
        if self.sm is None:
            return None
        major, minor = map(int, gpu.compute_capability.split("."))
        return any(code // 10 == major and code % 10 <= minor for code in self.sm)

    def problem(self, branch: Branch, gpus: Iterable[Gpu], arch: str | None = None) -> str | None:
        """Why this image cannot run here, in one sentence; None when it can. Within a major CUDA version any driver will do."""
        if int(branch.cuda.split(".")[0]) < int(self.cuda.split(".")[0]):
            return (
                f"{self.name} needs a driver for CUDA {self.cuda.split('.')[0]}, branch {branch.number} is for CUDA {branch.cuda}"
            )
        for gpu in gpus:
            if self.has_code_for(gpu) is None and self.torch is not None:
                return f"it is not known whether {self.name} has code for {gpu.name}"
            if self.has_code_for(gpu) is False:
                return f"{self.name} has no code for {gpu.name} (compute capability {gpu.compute_capability})"
        if arch is not None and arch not in self.architectures:
            return f"{self.name} is not known to exist for {arch}"
        return None

    def runs_on(self, branch: Branch, gpus: Iterable[Gpu], arch: str | None = None) -> bool:
        return self.problem(branch, gpus, arch) is None


@dataclass(frozen=True, slots=True)
class ImagesFile:
    as_of: date
    sources: Mapping[str, Source]
    default_unpack_ratio: Sourced[float]
    images: tuple[Image, ...]


@functools.cache
def load_images(folder: Path) -> ImagesFile:
    return load_file(folder / "images.yml", ImagesFile)
