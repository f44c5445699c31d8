"""Which GPUs a host has, and what they have in common."""

from __future__ import annotations

from typing import Literal

from bringup.catalog import Branch, Catalog, Gpu
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.survey import Survey, gpus
from bringup.versions import key

Kind = Literal["open", "proprietary"]


def known_gpus(survey: Survey, settings: Settings, catalog: Catalog) -> tuple[Gpu, ...]:
    """The catalog's records of the host's GPUs; several for one that shares its id undecidably. () only where none is expected.

    Raises Refused.
    """
    devices = gpus(survey)
    if not devices:
        if settings.expected_count == 0:
            return ()
        hint = "attach one, or set gpu_expected_count to 0 where that is right"
        raise Refused("no-gpu", "the host has no NVIDIA GPU on its PCI bus", hint)
    if settings.expected_count == 0:
        raise Refused("gpu-count", f"gpu_expected_count is 0, and the host has {len(devices)} GPUs", "correct the setting")
    found: dict[str, Gpu] = {}
    for each in devices:
        id_ = f"{each['vendor']}:{each['device']}"
        candidates = catalog.gpu_candidates(
            id_, f"{each['subsystem_vendor']}:{each['subsystem_device']}" if each["subsystem_device"] else None
        )
        if not candidates:
            way = "look for a newer gpu-bringup, or add it to bringup/catalog/gpus.yml"
            raise Refused("unknown-gpu", f"the GPU at {each['address']} ({id_}) is not in the catalog", way)
        found.update({gpu.name: gpu for gpu in candidates})
    unassigned = [each["address"] for each in devices if each["bars_unassigned"]]
    if unassigned:
        reason = f"the GPU at {', '.join(unassigned)} has memory regions without an address: no driver can use it"
        raise Refused("bar-unassigned", reason, "switch on Above 4G Decoding (or a larger MMIO window of the VM) in its firmware")
    return tuple(found.values())


def unusable(branch: Branch, boards: tuple[Gpu, ...]) -> str | None:
    """Why this branch cannot drive these GPUs, or None."""
    for board in boards:
        if board.max_branch is not None and branch.number > board.max_branch:
            return f"{board.name} has no driver after branch {board.max_branch}"
        floor = board.min_driver_in(branch.number) or board.min_driver
        if floor is not None and key(branch.newest) < key(floor):
            return f"{board.name} needs driver {floor} or newer"
    return None


def lowest_version(branch: int, boards: tuple[Gpu, ...]) -> str | None:
    """The lowest version of the branch that knows all these GPUs; None: any of it."""
    floors = [floor for board in boards if (floor := board.min_driver_in(branch)) is not None]
    return max(floors, key=key, default=None)


def choose_kind(settings: Settings, catalog: Catalog, boards: tuple[Gpu, ...], branch: int) -> Kind:
    """Open modules where all GPUs can use them, as NVIDIA recommends from Turing on. Raises Refused."""
    closed = sorted(each.name for each in boards if each.kernel_module == "proprietary-only")
    opened = sorted(each.name for each in boards if each.kernel_module == "open-only")
    if closed and opened:
        reason = f"{', '.join(closed)} need the proprietary module and {', '.join(opened)} the open one"
        raise Refused("no-common-module", reason, "put them into different hosts")
    if settings.kernel_module == "open" and closed:
        raise Refused("module-not-for-gpu", f"{', '.join(closed)} cannot use the open module", "set gpu_kernel_module to auto")
    if settings.kernel_module == "proprietary" and opened:
        raise Refused(
            "module-not-for-gpu", f"{', '.join(opened)} cannot use the proprietary module", "set gpu_kernel_module to auto"
        )
    kind: Kind = "proprietary" if closed else "open"
    if settings.kernel_module != "auto":
        kind = settings.kernel_module
    elif not catalog.module_rules.offers(branch, "open"):
        kind = "proprietary"
    if not catalog.module_rules.offers(branch, kind):
        raise Refused(
            "no-such-module",
            f"branch {branch} has no {kind} kernel module",
            "set gpu_kernel_module to auto, or name another branch",
        )
    return kind
