"""Curated data on GPUs, drivers, CUDA, images and distributions, read from the YAML files beside this module when used."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from bringup.catalog.cuda import Toolkit, load_cuda
from bringup.catalog.distros import Distro, Headers, Module, OwnDriver, Packages, find_distro, load_distros
from bringup.catalog.drivers import Branch, ModuleRules, SecurityFloor, load_drivers
from bringup.catalog.floors import Floor, load_floors
from bringup.catalog.gpus import Gpu, Nvlink, candidates, load_gpus
from bringup.catalog.images import Image, load_images
from bringup.catalog.records import CatalogError, Source, Sourced
from bringup.catalog.repositories import Purpose, Repository, find_repository, load_repositories
from bringup.catalog.toolkit import ContainerToolkit, DockerEngine, load_toolkit
from bringup.catalog.xids import Xid, load_xids

__all__ = [
    "Branch",
    "Catalog",
    "CatalogError",
    "ContainerToolkit",
    "Distro",
    "DockerEngine",
    "Floor",
    "Gpu",
    "Headers",
    "Image",
    "Module",
    "ModuleRules",
    "Nvlink",
    "OwnDriver",
    "Packages",
    "Purpose",
    "Repository",
    "SecurityFloor",
    "Source",
    "Sourced",
    "Toolkit",
    "Xid",
    "load",
]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All curated data. A file is read when something of it is first asked for, and kept; anything may raise CatalogError."""

    folder: Path

    def as_of(self) -> dict[str, date]:
        """The day of each file's data; reads all of them."""
        return {
            "gpus.yml": load_gpus(self.folder).as_of,
            "drivers.yml": load_drivers(self.folder).as_of,
            "cuda.yml": load_cuda(self.folder).as_of,
            "images.yml": load_images(self.folder).as_of,
            "distros.yml": load_distros(self.folder).as_of,
            "repositories.yml": load_repositories(self.folder).as_of,
            "floors.yml": load_floors(self.folder).as_of,
            "toolkit.yml": load_toolkit(self.folder).as_of,
            "xids.yml": load_xids(self.folder).as_of,
        }

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return load_gpus(self.folder).gpus

    @property
    def nvswitch_ids(self) -> frozenset[str]:
        """PCI ids of NVSwitches, as "10de:22a3"."""
        return frozenset(load_gpus(self.folder).nvswitch_ids)

    def gpu_candidates(self, vendor_device: str, subsystem: str | None = None) -> tuple[Gpu, ...]:
        """The GPUs that a PCI function ("10de:2335", subsystem "10de:18be") may be: none, one, or several that share the id."""
        return candidates(self.folder, vendor_device, subsystem)

    def gpu(self, vendor_device: str, subsystem: str | None = None) -> Gpu | None:
        """The GPU of a PCI id; None for an unknown id, and for one that several GPUs share undecidably (gpu_candidates)."""
        found = self.gpu_candidates(vendor_device, subsystem)
        return found[0] if len(found) == 1 else None

    @property
    def branches(self) -> tuple[Branch, ...]:
        """Driver branches, oldest first."""
        return load_drivers(self.folder).branches

    def branch(self, number: int) -> Branch | None:
        return next((branch for branch in self.branches if branch.number == number), None)

    @property
    def module_rules(self) -> ModuleRules:
        return load_drivers(self.folder).module_rules

    @property
    def security_floors(self) -> tuple[SecurityFloor, ...]:
        return load_drivers(self.folder).security_floors

    def security_floor(self, branch: int) -> str | None:
        """The lowest version of a branch without known holes; None where none is known."""
        return next((floor.version for floor in self.security_floors if floor.branch == branch), None)

    @property
    def toolkits(self) -> tuple[Toolkit, ...]:
        """CUDA toolkits, oldest first."""
        return load_cuda(self.folder).toolkits

    def cuda(self, version: str) -> Toolkit | None:
        """The CUDA toolkit of a version; "13.0.2" finds 13.0."""
        minor = ".".join(version.split(".")[:2])
        return next((toolkit for toolkit in self.toolkits if toolkit.version == minor), None)

    @property
    def images(self) -> tuple[Image, ...]:
        """Curated images, newest first within a family."""
        return load_images(self.folder).images

    def image(self, name: str) -> Image | None:
        """By its name in the catalog, or by its reference."""
        return next((image for image in self.images if name in (image.name, image.reference)), None)

    @property
    def default_unpack_ratio(self) -> float:
        """Unpacked size over compressed size, where an image has none recorded."""
        return load_images(self.folder).default_unpack_ratio.value

    @property
    def floors(self) -> tuple[Floor, ...]:
        return load_floors(self.folder).floors

    def xid(self, code: int) -> Xid | None:
        return next((each for each in load_xids(self.folder).xids if each.code == code), None)

    @property
    def toolkit(self) -> ContainerToolkit:
        return load_toolkit(self.folder).toolkit

    @property
    def docker(self) -> DockerEngine:
        return load_toolkit(self.folder).docker

    @property
    def distros(self) -> tuple[Distro, ...]:
        return load_distros(self.folder).distros

    def distro(self, distro_id: str, version_id: str) -> Distro | None:
        """By os-release's ID and VERSION_ID; ID_LIKE is not used."""
        return find_distro(self.folder, distro_id, version_id)

    def repository(self, purpose: Purpose, distro: Distro, arch: str) -> Repository | None:
        """The package repository for a purpose; None where there is none for this distribution or architecture."""
        return find_repository(self.folder, purpose, distro, arch)

    @property
    def keys(self) -> Mapping[str, Sourced[str] | None]:
        """Fingerprints of the keys that sign repositories, by key file or name; None where it is not known."""
        return load_repositories(self.folder).keys


@functools.cache
def load(folder: Path | None = None) -> Catalog:
    """The catalog that comes with this package, or one in another folder with the same files."""
    return Catalog(folder or Path(__file__).parent)
