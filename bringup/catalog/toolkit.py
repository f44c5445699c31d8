"""The NVIDIA Container Toolkit and Docker: versions at which something that matters here changes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from bringup.catalog.records import Source, SourceName, load_file


@dataclass(frozen=True, slots=True)
class ContainerToolkit:
    """`packages` must all have one version; `leftovers` are packages of its past under other names."""

    preferred: str
    floor: str  # below it known holes are open
    packages: tuple[str, ...]
    jit_cdi_since: str
    cdi_refresh_since: str
    spec_needs_docker: str
    leftovers: tuple[str, ...]
    releases: Mapping[str, date]
    sources: tuple[SourceName, ...]


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """`packages` are docker-ce's, `conflicts` the ones that its installation replaces."""

    newest: str
    cgroup_v2_since: str
    validate_since: str
    cdi_since: str
    cdi_default_since: str
    gpus_through_cdi_since: str
    few_open_files_since: str
    packages: tuple[str, ...]
    conflicts: tuple[str, ...]
    sources: tuple[SourceName, ...]


@dataclass(frozen=True, slots=True)
class ToolkitFile:
    as_of: date
    sources: Mapping[str, Source]
    toolkit: ContainerToolkit
    docker: DockerEngine


@functools.cache
def load_toolkit(folder: Path) -> ToolkitFile:
    return load_file(folder / "toolkit.yml", ToolkitFile)
