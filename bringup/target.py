"""What a host shall be, from its hardware, distribution, settings and the catalog. Operations get this and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bringup.settings import Reboot, Verify
from bringup.settings_images import Login, Prewarm

Injected = Literal["cdi", "runtime"]
Family = Literal["apt", "dnf", "zypper"]


@dataclass(frozen=True)
class Repository:
    """A signed package repository. NVIDIA's for apt are flat (`deb URL /`): suite `/` and no component."""

    name: str  # nvidia-driver
    url: str
    key_url: str
    fingerprint: str  # of the signing key, 40 hex digits
    keyring: str  # where the key lies on the host: the path that the vendor's own instructions use, so that both agree
    suite: str = "/"
    component: str | None = None
    family: Family = "apt"

    @property
    def sources_file(self) -> str:
        folder = {"apt": "/etc/apt/sources.list.d", "dnf": "/etc/yum.repos.d", "zypper": "/etc/zypp/repos.d"}[self.family]
        return f"{folder}/gpu-bringup-{self.name}.{'sources' if self.family == 'apt' else 'repo'}"

    @property
    def sources_text(self) -> str:
        """deb822 (apt reads it since 1.1), or an ini section for dnf and zypper."""
        if self.family != "apt":
            return (
                f"# written by gpu-bringup\n[gpu-bringup-{self.name}]\nname={self.name}\nbaseurl={self.url}\nenabled=1\n"
                f"gpgcheck=1\ngpgkey=file://{self.keyring}\npriority=10\n"  # before other sources of the same packages (99)
            )
        components = f"Components: {self.component}\n" if self.component else ""
        return (
            f"# written by gpu-bringup\nTypes: deb\nURIs: {self.url}\nSuites: {self.suite}\n"
            f"{components}Signed-By: {self.keyring}\n"
        )


@dataclass(frozen=True)
class Driver:
    """The driver: `wanted` is a branch (`580`) or an exact version (`580.159.04`)."""

    source: Literal["nvidia", "distro", "preinstalled"]
    wanted: str
    kind: Literal["open", "proprietary"]
    packages: tuple[str, ...]
    headers: tuple[str, ...]  # packages that bring the running kernel's headers
    repository: Repository | None
    services: tuple[str, ...]  # units that must run: nvidia-persistenced.service
    hold: bool
    hold_kernel: bool = False
    floor: str | None = None  # the branch's oldest version without known holes
    lowest: str | None = None  # the lowest version of the branch that knows the host's GPUs; None: any of it
    origin: str | None = None  # of the distribution's own archive, as its Release file says: the driver comes from there alone
    unwanted: tuple[str, ...] = ()  # packages of the other kind of module, which Debian lets be installed beside
    way_out: str = ""  # what to set where its module does not compile
    stream: str | None = None  # dnf's module stream that has the packages: nvidia-driver:580-open
    others: tuple[str, ...] = ()  # those of the packages that have a version of their own: nvlsm
    extra_repositories: tuple[str, ...] = ()  # of the distribution, for what the driver depends on: epel, crb

    @property
    def versioned(self) -> tuple[str, ...]:
        """The packages that have the driver's version."""
        return tuple(each for each in self.packages if each not in self.others)

    @property
    def is_ours(self) -> bool:
        """Do we install and upgrade it?"""
        return self.source != "preinstalled"


@dataclass(frozen=True)
class Docker:
    packages: tuple[str, ...]  # installed where there is no Docker yet
    repository: Repository | None  # docker-ce's, where the packages come from there
    options: Mapping[str, Any]  # keys of daemon.json that must hold these values; the user's other keys stay
    injection: Injected
    users: tuple[str, ...] = ()  # members of group docker, beside those that are there


@dataclass(frozen=True)
class Toolkit:
    packages: tuple[str, ...]
    floor: str  # oldest version without a known hole
    repository: Repository
    hold: bool
    leftovers: tuple[str, ...] = ()  # packages of its past, under other names


@dataclass(frozen=True)
class CommandLine:
    """Words of the kernel's command line; `tool`: the boot loader's, which changes it."""

    tool: str
    add: tuple[str, ...]
    remove: tuple[str, ...]


@dataclass(frozen=True)
class Pulling:
    """How images come to the host, and what becomes of them."""

    lock: str  # path of the lock file on the control machine
    refresh: bool
    archives: Mapping[str, str]  # reference -> file on the control machine
    prune: bool
    prewarm: Prewarm
    parallel: int  # hosts that pull at the same time
    logins: Mapping[str, Login]
    mirrors: tuple[str, ...]
    insecure: tuple[str, ...]
    sizes: Mapping[str, tuple[int | None, float]]  # reference -> compressed bytes, unpacked over compressed


@dataclass(frozen=True)
class Target:
    """One host's target."""

    family: Family  # of the package manager
    driver: Driver | None  # None: a host without GPU, where that is fine
    blocked_modules: tuple[str, ...]
    command_line: CommandLine | None  # None: it stays as it is
    docker: Docker
    toolkit: Toolkit | None
    memlock: int | Literal["unlimited"] | None  # None: what the host has is all that can be had
    images: tuple[str, ...]
    pulling: Pulling
    reboot: Reboot
    reboot_timeout_s: int
    lock_timeout_s: int
    accepted: frozenset[str]  # the refusals that the user overrides
    verify: Verify
    expected_gpus: int
    settings: Mapping[str, Any]  # those that differ from the default, for the provenance
