"""Distributions: how far they were tried, and the names of packages and repositories on them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.records import Source, SourceName, load_file

Module = Literal["open", "proprietary"]
Names = tuple[str, ...]
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64", "sbsa": "aarch64"}
# 6.1.0-57-cloud-amd64, 6.12.107+deb13-amd64, 6.8.0-1015-aws, 5.14.21-150500.55.7-default
_KERNEL = re.compile(r"(?P<version>\d[\d.]*(?:-[\d.]+|\+[a-z0-9.]+))-(?P<flavour>[a-z][a-z0-9-]*)")


def kernel_parts(release: str) -> dict[str, str] | None:
    """Version and flavour of a kernel release: 6.8.0-1015-aws is 6.8.0-1015 and aws; None where it is built otherwise."""
    match = _KERNEL.fullmatch(release)
    return match.groupdict() if match else None


def architecture(name: str) -> str:
    """The name that `uname -m` gives, for any of the usual ones. Unknown names are returned as they are."""
    return _ARCHITECTURES.get(name, name)


def _filled(template: str, parts: Mapping[str, str]) -> str | None:
    try:
        return template.format(**parts)
    except KeyError:
        return None


@dataclass(frozen=True, slots=True)
class Packages:
    """Package names for one branch and one kind of module, nothing left to fill in. All but nvlsm have the driver's version."""

    driver: Names
    persistence: Names
    fabric_manager: Names
    nscq: Names
    nvlsm: Names
    imex: Names
    pinning: Names
    module_stream: str | None


@dataclass(frozen=True, slots=True)
class PackageSet:
    """NVIDIA's names for the branches from `since` to below `before`; {branch} stands for the branch.

    `recalled` names the fields that were looked up nowhere.
    """

    since: int
    before: int | None
    open: Names
    proprietary: Names
    persistence: Names
    fabric_manager: Names
    nscq: Names
    nvlsm: Names
    imex: Names
    sources: tuple[SourceName, ...]
    pinning: Names = ()
    open_stream: str | None = None
    proprietary_stream: str | None = None
    recalled: tuple[Literal["open", "proprietary", "persistence", "fabric_manager", "nscq", "nvlsm", "imex"], ...] = ()

    def covers(self, branch: int) -> bool:
        return self.since <= branch and (self.before is None or branch < self.before)

    def packages(self, branch: int, module: Module) -> Packages:
        def fill(names: Names) -> Names:
            return tuple(name.format(branch=branch) for name in names)

        stream = self.open_stream if module == "open" else self.proprietary_stream
        return Packages(
            driver=fill(self.open if module == "open" else self.proprietary),
            **{name: fill(getattr(self, name)) for name in ("persistence", "fabric_manager", "nscq", "nvlsm", "imex", "pinning")},
            module_stream=stream.format(branch=branch) if stream else None,
        )


@dataclass(frozen=True, slots=True)
class Headers:
    """Packages with what a module is built against: for the running kernel, and the one that brings the next kernel's."""

    running: str
    meta: str | None


@dataclass(frozen=True, slots=True)
class HeaderRule:
    """Names for kernels whose release begins with `kernel`; {kernel}, {version} and {flavour} stand for parts of it."""

    running: str
    meta: str | None
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class OwnDriver:
    """A driver in the distribution's own archive. `signed`: its modules come built and signed for Secure Boot.

    {flavour} in a name stands for the kernel's; `packages` fills it in.
    """

    branch: int
    version: str
    open: Names
    proprietary: Names
    persistence: Names
    sources: tuple[SourceName, ...]
    fabric_manager: Names = ()
    signed: bool = False
    note: str | None = None

    def packages(self, module: Module, kernel: str) -> Names:
        """Names for a kernel release; none where the archive has no such module, or the kernel no flavour that it knows."""
        flavour = (kernel_parts(kernel) or {}).get("flavour")
        names = self.open if module == "open" else self.proprietary
        if flavour is None and any("{flavour}" in name for name in names):
            return ()
        return tuple(name.format(flavour=flavour) for name in names)


@dataclass(frozen=True, slots=True)
class DockerPackages:
    """Where Docker comes from: docker-ce's folder and suite (none: no such repository), and the distribution's own."""

    ce_os: str | None
    own_package: str | None
    own_version: str | None
    own_extra: Names = ()  # what is needed and own_package does not depend on: the docker command, where it has its own package


@dataclass(frozen=True, slots=True)
class Distro:
    """One distribution and version. `version` without a dot stands for all its minor versions (9 for 9.6)."""

    id: str
    version: str
    name: str
    family: Literal["apt", "dnf", "zypper"]
    tier: Literal["tried", "dressed", "decided"]
    nvidia_repo: str
    nvidia_arch: Mapping[str, str]
    nvidia_key: str
    package_sets: tuple[PackageSet, ...]
    header_rules: tuple[HeaderRule, ...]
    docker: DockerPackages
    sources: tuple[SourceName, ...]
    codename: str | None = None
    first_branch: int | None = None  # the oldest one seen in NVIDIA's repository for it; an older one may be missing there
    own_drivers: tuple[OwnDriver, ...] = ()
    extra_repositories: Names = ()  # what must be enabled beside NVIDIA's: contrib, epel, crb
    extra_packages: Names = ()  # what the driver needs and does not depend on

    def repo_id(self, arch: str) -> str | None:
        """NVIDIA's repository, "debian12/x86_64"; None where there is none for the architecture."""
        name = self.nvidia_arch.get(architecture(arch))
        return f"{self.nvidia_repo}/{name}" if name else None

    def packages(self, branch: int, module: Module) -> Packages | None:
        """Names in NVIDIA's repository; None where it has no such branch or no such kind of module."""
        found = next((entry for entry in self.package_sets if entry.covers(branch)), None)
        names = found.packages(branch, module) if found else None
        return names if names and names.driver else None

    def headers(self, kernel: str) -> Headers | None:
        """Packages of the headers for a kernel release (`uname -r`).

        No meta: the distribution has none for a kernel built otherwise, whose own package may still be there. None: the
        names cannot even be told.
        """
        rule = next((rule for rule in self.header_rules if kernel.startswith(rule.kernel)), None)
        parts = {"kernel": kernel} | (kernel_parts(kernel) or {})
        running = _filled(rule.running, parts) if rule else None
        if rule is None or running is None:
            return None
        return Headers(running, _filled(rule.meta, parts) if rule.meta else None)

    def own_driver(self, branch: int) -> OwnDriver | None:
        return next((driver for driver in self.own_drivers if driver.branch == branch), None)


@dataclass(frozen=True, slots=True)
class DistrosFile:
    as_of: date
    sources: Mapping[str, Source]
    package_sets: Mapping[str, tuple[PackageSet, ...]]  # named here once, taken over into the distributions by YAML anchors
    header_rules: Mapping[str, tuple[HeaderRule, ...]]
    distros: tuple[Distro, ...]


@functools.cache
def load_distros(folder: Path) -> DistrosFile:
    return load_file(folder / "distros.yml", DistrosFile)


def find_distro(folder: Path, distro_id: str, version_id: str) -> Distro | None:
    """By os-release's ID and VERSION_ID ("rocky", "9.6"); ID_LIKE is not looked at, a relative is not the distribution."""
    major = version_id.partition(".")[0]
    for distro in load_distros(folder).distros:
        if distro.id == distro_id and distro.version in (version_id, major):
            return distro
    return None
