"""What must hold on a host, from its user's settings, its PCI ids and the catalog. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from bringup import versions
from bringup.catalog import Catalog, Gpu
from bringup.policy.fit import Loaded, fit
from bringup.settings import Settings
from bringup.target import Injected

NVIDIA = "0x10de"
CAP_SYS_RESOURCE = 24  # linux/capability.h


@dataclass(frozen=True)
class Board:
    """A GPU on the PCI bus. `gpu` is None where the catalog does not know the id."""

    address: str
    id: str  # 10de:2335
    gpu: Gpu | None


def boards_on_bus(listing: str, catalog: Catalog) -> tuple[Board, ...]:
    """From lines such as `0000:06:00.0/vendor:0x10de`: NVIDIA's display functions (classes 0x0300.. and 0x0302..)."""
    functions: dict[str, dict[str, str]] = {}
    for line in listing.splitlines():
        address, _, rest = line.partition("/")
        name, _, value = rest.partition(":")
        functions.setdefault(address, {})[name] = value.strip()
    found = []
    for address, each in sorted(functions.items()):
        if each.get("vendor") == NVIDIA and each.get("class", "").startswith(("0x0300", "0x0302")):
            id_ = f"10de:{each['device'].removeprefix('0x')}"
            names = [each.get(name, "").removeprefix("0x") for name in ("subsystem_vendor", "subsystem_device")]
            candidates = catalog.gpu_candidates(id_, ":".join(names) if all(names) else None)
            found.append(Board(address, id_, candidates[0] if candidates else None))
    return tuple(found)


def branch_problem(settings: Settings, catalog: Catalog, version: str, today: date) -> str | None:
    """Why this driver is not what gpu_driver_branch asks for, or None. auto: any branch that NVIDIA still fixes."""
    asked = settings.driver_branch
    if asked[0].isdigit():
        whole = asked.count(".") < 2 and version.startswith(f"{asked}.")  # 580, and 580.159 of 580.159.04
        return None if whole or version == asked else f"driver {version} is loaded, gpu_driver_branch is {asked}"
    branch = catalog.branch(versions.branch_of(version))
    if branch is None:
        return f"driver branch {versions.branch_of(version)} is not in the catalog"
    kinds = {"lts": ("lts",), "production": ("production", "lts")}.get(asked, (branch.kind,))
    if branch.kind not in kinds:
        return f"driver {version} is of a {branch.kind} branch, gpu_driver_branch is {asked}"
    if branch.is_supported(today) is False and "end-of-life" not in settings.accept:
        return f"driver {version} is of branch {branch.number}, which is at its end of life"
    return None


def module_problem(settings: Settings, boards: Iterable[Board], kind: str) -> str | None:
    """Why the loaded kernel module ("open", "proprietary") does not fit, or None."""
    if settings.kernel_module not in ("auto", kind):
        return f"the {kind} module is loaded, gpu_kernel_module is {settings.kernel_module}"
    for each in boards:
        if each.gpu and each.gpu.kernel_module == ("proprietary-only" if kind == "open" else "open-only"):
            return f"the {kind} module is loaded, {each.gpu.name} at {each.address} does not run with it"
    return None


def injection(settings: Settings, catalog: Catalog, docker_version: str) -> Injected:
    """How containers get their GPUs here."""
    if settings.injection != "auto":
        return settings.injection
    return "cdi" if versions.at_least(docker_version, catalog.docker.cdi_since) else "runtime"


def docker_flags(injected: Injected) -> str:
    """All GPUs for a container."""
    if injected == "cdi":
        return "--runtime runc --device nvidia.com/gpu=all"
    return "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"


def daemon_options(settings: Settings) -> dict[str, Any]:
    """What daemon.json must hold because of the settings; other keys are the user's own."""
    wanted: dict[str, Any] = {"default-shm-size": settings.shm_size}
    if settings.insecure_registries:
        wanted["insecure-registries"] = list(settings.insecure_registries)
    if settings.registry_mirrors:
        wanted["registry-mirrors"] = list(settings.registry_mirrors)
    return {**wanted, **settings.docker_options}


def reference(named: str, catalog: Catalog, loaded: str | None, boards: Iterable[Board]) -> str | None:
    """The full reference of an entry of gpu_images, or None where the catalog has nothing for it.

    auto: the newest curated image that the driver and the GPUs can run.
    """
    if "/" in named:
        return named
    if named != "auto":
        image = catalog.image(named)
        return image.pinned if image else None
    driver = Loaded.of(loaded, catalog) if loaded else None
    gpus = [each.gpu for each in boards if each.gpu]
    return next((each.pinned for each in catalog.images if driver and fit(each, driver, gpus, None, catalog).runs), None)


def may_raise_limits(status: str) -> bool:
    """From /proc/1/status: whether PID 1 may raise hard limits. Without it, what the host has is all that can be had."""
    held = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd:"))
    return bool(held >> CAP_SYS_RESOURCE & 1)


def limit_of(text: str, unit: int = 1) -> int | str:
    """`unlimited` or bytes, from what systemd (infinity), ulimit (KiB: unit 1024) and the kernel print."""
    return "unlimited" if text.strip() in ("unlimited", "infinity") else int(text) * unit
