"""Package repositories and the fingerprints of their keys."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.distros import Distro, architecture
from bringup.catalog.records import Source, Sourced, load_file

Purpose = Literal["nvidia-driver", "nvidia-toolkit", "docker"]
_DEB_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Template:
    """A repository for one family; placeholders are listed at the top of the file. No suite: a flat apt repository."""

    url: str
    key_url: str
    key: str | None = None  # None: the distribution's key of NVIDIA's repository
    suite: str | None = None
    component: str | None = None


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository for one distribution and architecture, ready to write. No fingerprint: none is known, none can be pinned."""

    purpose: Purpose
    url: str
    key_url: str
    fingerprint: Sourced[str] | None
    suite: str | None
    component: str | None


@dataclass(frozen=True, slots=True)
class RepositoriesFile:
    as_of: date
    sources: Mapping[str, Source]
    repositories: Mapping[str, Mapping[str, Template]]
    keys: Mapping[str, Sourced[str] | None]


@functools.cache
def load_repositories(folder: Path) -> RepositoriesFile:
    return load_file(folder / "repositories.yml", RepositoriesFile)


def find_repository(folder: Path, purpose: Purpose, distro: Distro, arch: str) -> Repository | None:
    """The repository for a purpose; None where there is none for this distribution or architecture."""
    data = load_repositories(folder)
    template = data.repositories.get(purpose, {}).get(distro.family)
    machine = architecture(arch)
    nvidia_arch = distro.nvidia_arch.get(machine)
    if template is None or machine not in _DEB_ARCHITECTURES:
        return None
    if (purpose == "nvidia-driver" and nvidia_arch is None) or (purpose == "docker" and distro.docker.ce_os is None):
        return None

    def fill(text: str) -> str:
        return text.format(
            distro=distro.nvidia_repo,
            arch=nvidia_arch,
            key_file=distro.nvidia_key,
            deb_arch=_DEB_ARCHITECTURES[machine],
            rpm_arch=machine,
            os=distro.docker.ce_os,
            version=distro.version,
            codename=distro.codename,
        )

    return Repository(
        purpose=purpose,
        url=fill(template.url),
        key_url=fill(template.key_url),
        fingerprint=data.keys.get(template.key or distro.nvidia_key),
        suite=fill(template.suite) if template.suite else None,
        component=template.component,
    )
