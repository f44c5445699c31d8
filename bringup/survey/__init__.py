"""What a host is: the shape of a survey. `bringup.survey.parse` makes it from what `facts/survey.sh` prints.

Encoding: key absent = not looked at; None = not there; {"unreadable": why} = could not be read; [] = looked, none.
All values are JSON-able, so that a survey can be saved, shared, and become a test.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

SCHEMA = 1
T = TypeVar("T")


class Unreadable(TypedDict):
    """Why something could not be read: no permission, a time limit, a failing program. Unknown, which never counts as absent."""

    unreadable: str


Read: TypeAlias = T | Unreadable | None


class Os(TypedDict):
    """From os-release, lower case: debian, 13."""

    id: str
    version_id: str
    pretty_name: str
    codename: str | None


class PciDevice(TypedDict):
    """An NVIDIA function on the PCI bus. Ids are 4 hex digits; the class is 6: `030200` 3D controller, `068000` NVSwitch."""

    address: str
    vendor: str
    device: str
    subsystem_vendor: str | None
    subsystem_device: str | None
    pci_class: str
    numa_node: int | None
    driver: str | None
    bars: int
    bars_unassigned: int


class Kernel(TypedDict):
    """A kernel with a folder in /lib/modules."""

    release: str
    headers: bool
    nvidia_module: bool
    image: bool


class ModuleFile(TypedDict):
    path: str
    version: str  # empty where the file does not tell


class DeviceNode(TypedDict):
    """`number`: major:minor, decimal; `linked`: /dev/char/NUMBER leads to it; `mode` as chmod takes it: 666."""

    path: str
    number: str
    linked: bool
    mode: str
    group: str


class Driver(TypedDict):
    """`loaded_*` is what the kernel runs, `module_*` what modprobe would load, `libraries` the versions of libcuda on disk.

    `module_files`: each nvidia.ko for the running kernel, of which modprobe would load one.
    """

    loaded_version: Read[str]
    loaded_text: Read[str]
    module_version: Read[str]
    module_license: Read[str]
    module_files: Read[list[ModuleFile]]
    libraries: list[str]
    device_nodes: list[str]
    nodes: list[DeviceNode]  # those in /dev/nvidia-caps too
    smi: Read[str]
    processes: Read[list[str]]
    blocked_modules: list[str]
    runfile: bool
    initramfs_stale: bool | None  # made before our list of blocked modules was written; None: there is none


class Package(TypedDict):
    version: str
    state: str  # dpkg's: installed, half-configured, config-files ...
    held: bool


class LockHolder(TypedDict):
    file: str
    pid: int
    command: str


class Dnf(TypedDict):
    """`version_locks`: lines of versionlock's list; None without that plugin. `stream`: NVIDIA's module stream that is enabled."""

    version_locks: Read[list[str]]
    stream: str | None


class Packages(TypedDict):
    """`installed` holds only the packages that a plan looks at (facts/survey.sh has the pattern).

    With rpm, where several versions of a kernel's packages lie side by side, each is there by its full name too (kernel-devel-5.14.0-…),
    and rpm's own keys by theirs (gpg-pubkey-d42d0685).
    """

    manager: Literal["dpkg", "rpm"] | None
    installed: dict[str, Package]
    holds: Read[list[str]]
    locks: list[LockHolder]
    interrupted: Read[bool]
    repositories: dict[str, str | Unreadable]  # path -> text, passwords masked
    keyrings: dict[str, str]  # path -> base64 of its bytes
    preferences: dict[str, str | Unreadable]
    settings: dict[str, str | Unreadable]  # our own files in apt.conf.d
    headers_offered: bool | None  # the running kernel's; looked at where they lack; None: the package lists do not tell
    edited_units: list[str]  # files of the driver's packages in systemd's own folder that are no longer as they came
    driver_candidates: list[str]  # versions of the installed driver's package that apt knows of; [] where it is not installed
    ours: list[str]  # packages that were not there before we installed them
    disabled: list[str]  # source files that we disabled
    held_by_us: list[str]  # packages that we held: holds and locks of others are told from ours by it
    dnf: Dnf | None  # None: no host of rpm


class Container(TypedDict):
    id: str
    name: str
    image: str


class Docker(TypedDict):
    """`info` is `docker info` as JSON; None where there is no docker, unreadable where its daemon does not answer."""

    path: str | None
    version: Read[str]
    snap: bool
    podman: bool  # `docker` is podman's imitation
    info: Read[dict[str, Any]]
    running: Read[list[Container]]
    auto_remove: Read[list[str]]  # names of those that were started with --rm
    images: Read[list[str]]  # each as repository:tag and, where it was pulled, as repository@digest
    pulled: list[str]  # references that we pulled or loaded, old ones too
    daemon_json: Read[str]
    daemon_json_written_s: float | None
    daemon_json_taken_up_s: float | None  # when that one was written which a change of ours has seen the daemon read
    daemon_json_pending: Read[str]  # what we go back to, while a change of ours is not yet proven; empty: to no file
    command: str  # the unit's command line of dockerd, with what its environment says; empty where there is none
    group: Read[list[str]]  # members of group docker
    started_s: float | None
    memlock: Read[str]
    containerd_memlock: Read[str]  # None: there is no containerd.service that runs
    dropins: dict[str, str | Unreadable]  # of docker.service and containerd.service


class CdiSpec(TypedDict):
    """`version`: of CDI; `mode`: of the file; `numbers`: by device node, where the spec has them; `missing`: files that are gone."""

    path: str
    kind: str | None
    version: str | None
    mode: str
    numbers: dict[str, str]
    missing: list[str]
    library_versions: list[str]
    device_nodes: list[str]
    devices: list[str]


class Limits(TypedDict):
    """memlock in bytes as text, or `unlimited`; `may_raise`: PID 1 holds CAP_SYS_RESOURCE, so hard limits can be raised."""

    pid1_memlock_hard: str | None
    pid1_open_files_hard: str | None
    may_raise: bool | None
    limits_d: dict[str, str | Unreadable]
    systemd_memlock: Read[str]
    systemd_dropins: dict[str, str | Unreadable]


class Unit(TypedDict):
    """As systemd names the properties; memlock is a number of bytes or `infinity`, and empty for units that are no services."""

    load: str
    active: str
    enabled: str
    fragment: str
    exec_start: str
    memlock: str


class Bootloader(TypedDict):
    """`tools`: of grubby and update-grub, those that are there; `arguments`: of the kernel that boots next, where grubby says them."""

    tools: list[str]
    arguments: Read[str]


class Disk(TypedDict):
    free_kib: int | None
    free_inodes: int | None


class Survey(TypedDict):
    schema: int
    root: bool
    clock_s: float
    clock_offset_s: float  # host minus control machine, at the time of parsing
    arch: str
    kernel: str
    kernel_built: Read[str]  # /proc/version: which compiler built it
    boot_id: Read[str]
    os: Read[Os]
    command_line: Read[str]
    memory_mib: int | None
    virtualization: Read[str]
    container: Read[str]
    dmi: dict[str, str | Unreadable]
    pci: list[PciDevice]
    modules: list[str]
    kernels: list[Kernel]
    driver: Driver
    secure_boot: Read[bool]
    selinux: Read[str]  # enforcing, permissive, disabled
    dkms: Read[list[str]]  # lines of `dkms status`
    packages: Packages
    cloud_init: Read[str]
    reboot_required: bool
    docker: Docker
    toolkit_version: Read[str]
    toolkit_config: Read[str]
    ldconfig: list[str]  # of /sbin/ldconfig.real (Ubuntu's and Debian's own until 13) and /sbin/ldconfig, those that are there
    rootless: list[str]  # sockets of rootless daemons that run
    cdi: list[CdiSpec]
    bootloader: Bootloader
    cgroup_controllers: Read[list[str]]  # None: not the unified hierarchy
    limits: Limits
    disks: dict[str, Disk]
    units: Read[dict[str, Unit]]
    our_files: dict[str, str | Unreadable]  # units and scripts that we wrote, without comments
    provenance: Read[str]
    proof: Read[str]
    lock: str | None
    proxies: list[str]


def unreadable(value: object) -> str | None:
    """Why this value could not be read, or None when it could."""
    if isinstance(value, dict) and set(value) == {"unreadable"}:
        return str(value["unreadable"])
    return None


def known(value: Read[T]) -> T | None:
    """The value where it is there and was read. None says nothing about which of the other two it is: ask `unreadable`."""
    return None if unreadable(value) is not None else value  # type: ignore[return-value]


def gpus(survey: Survey) -> list[PciDevice]:
    """NVIDIA display functions: VGA (0300xx) and 3D (0302xx) controllers."""
    return [each for each in survey["pci"] if each["pci_class"].startswith(("0300", "0302"))]


def nvswitches(survey: Survey) -> list[PciDevice]:
    """NVSwitch functions: bridges of class 0680xx by NVIDIA."""
    return [each for each in survey["pci"] if each["pci_class"].startswith("0680")]


def loaded_version(survey: Survey) -> str | None:
    """Version of the loaded kernel module; None when none is loaded (or it could not be read)."""
    return known(survey["driver"]["loaded_version"])


def module_kind(survey: Survey) -> Literal["open", "proprietary"] | None:
    """Kind of the loaded module, from the driver's own version text (seen on an H200: "Open Kernel Module")."""
    text = known(survey["driver"]["loaded_text"])
    if text is None:
        return None
    return "open" if "Open Kernel Module" in text else "proprietary"


def installed_kind(survey: Survey) -> Literal["open", "proprietary"] | None:
    """Kind of the module that modprobe would load, from its license (seen: "Dual MIT/GPL" of the open one, "NVIDIA" of the other)."""
    found = known(survey["driver"]["module_license"]) or ""
    return "open" if "GPL" in found else "proprietary" if found == "NVIDIA" else None


def is_simulated(survey: Survey) -> bool:
    """The driver says of itself that it is a stand-in."""
    return "stand-in" in (known(survey["driver"]["loaded_text"]) or "")


def installed(survey: Survey, package: str) -> str | None:
    """Version of a fully installed package; None also when it is half installed."""
    found = survey["packages"]["installed"].get(package)
    return found["version"] if found and found["state"] == "installed" else None


def unit(survey: Survey, name: str) -> Unit | None:
    """A systemd unit that is there, or None."""
    found = (known(survey["units"]) or {}).get(name)
    return found if found and found["load"] not in ("not-found", "") else None
