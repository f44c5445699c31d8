"""Which GPUs a host has, whether they are the expected ones, and which branch and kind of module they have in common."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from bringup.catalog import Branch, Catalog, Gpu
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.steps import provenance
from bringup.survey import PciDevice, Survey, gpus
from bringup.versions import key

Kind = Literal["open", "proprietary"]


def known_gpus(survey: Survey, settings: Settings, catalog: Catalog) -> tuple[Gpu, ...]:
    """The catalog's records of the host's GPUs; several for one that shares its id undecidably. () only where none is expected.

    Raises Refused.
    """
    devices = gpus(survey)
    if not devices and settings.expected_count in (None, 0):
        if settings.expected_count == 0:
            return ()
        hint = "attach one, or set gpu_expected_count to 0 where that is right"
        raise Refused("no-gpu", "the host has no NVIDIA GPU on its PCI bus", hint)
    _refuse_count(survey, settings, len(devices))
    found: dict[str, Gpu] = {}
    for each in devices:
        candidates = candidates_of(each, catalog)
        if not candidates:
            way = "look for a newer gpu-bringup, or add it to bringup/catalog/gpus.yml"
            raise Refused("unknown-gpu", f"the GPU at {each['address']} ({_id(each)}) is not in the catalog", way)
        if settings.expected_model is not None and not any(_is_model(gpu.name, settings.expected_model) for gpu in candidates):
            raise _other_model(settings.expected_model, each, candidates, catalog)
        found.update({gpu.name: gpu for gpu in candidates})
    unassigned = [each["address"] for each in devices if each["bars_unassigned"]]
    if unassigned:
        reason = f"the GPU at {', '.join(unassigned)} has memory regions without an address: no driver can use it"
        raise Refused("bar-unassigned", reason, "switch on Above 4G Decoding (or a larger MMIO window of the VM) in its firmware")
    return tuple(found.values())


def candidates_of(device: PciDevice, catalog: Catalog) -> tuple[Gpu, ...]:
    """The products that this function may be."""
    subsystem = f"{device['subsystem_vendor']}:{device['subsystem_device']}" if device["subsystem_device"] else None
    return catalog.gpu_candidates(_id(device), subsystem)


def _id(device: PciDevice) -> str:
    return f"{device['vendor']}:{device['device']}"


def _refuse_count(survey: Survey, settings: Settings, count: int) -> None:
    """More or fewer than the user expects, or fewer than there were when this project last worked here."""
    expected = settings.expected_count
    if expected is not None and expected != count:
        way = (
            "look for Xid 79 and PCIe errors in the kernel log and power-cycle the machine" if count < expected else "correct it"
        )
        raise Refused(
            "gpu-count",
            f"gpu_expected_count is {expected}, and {_gpus(count)} on the PCI bus",
            f"{way}, or set it to {count}",
        )
    remembered = provenance.current(survey).get("gpus")
    if expected is None and isinstance(remembered, int) and count < remembered:
        way = f"look for Xid 79 and PCIe errors in the kernel log, or set gpu_expected_count to {count} where it is right"
        raise Refused("gpu-count", f"this host had {remembered} GPUs, and now {_gpus(count)} on the PCI bus", way)


def _gpus(count: int) -> str:
    return "1 GPU is" if count == 1 else f"{count or 'no'} GPUs are"


def _is_model(name: str, wanted: str) -> bool:
    """Every word of what is wanted is one of the name's: `H200` is `H200 SXM 141GB`, and `A10` is no `A100`."""
    words = {each.strip("()").casefold() for each in name.split()}
    return {each.casefold() for each in wanted.split()} - {"nvidia"} <= words


def _other_model(wanted: str, device: PciDevice, candidates: tuple[Gpu, ...], catalog: Catalog) -> Refused:
    name = candidates[0].name
    hint = ""
    if not any(_is_model(each.name, wanted) for each in catalog.gpus):
        near = difflib.get_close_matches(
            wanted, sorted({word for each in catalog.gpus for word in (each.name, *each.name.split())}), 1
        )
        hint = f" (there is no {wanted} in the catalog{f'; did you mean {near[0]}?' if near else ''})"
    reason = f"gpu_expected_model is {wanted}, and the GPU at {device['address']} is {name}{hint}"
    return Refused("gpu-model", reason, f"set it to {name}, or give the host the right GPU")


def named(boards: Iterable[Gpu]) -> str:
    """`L4 and Tesla V100 PCIe 16GB`, in the order of the alphabet."""
    return " and ".join(sorted(Counter(each.name for each in boards)))


def first_driver(board: Gpu, catalog: Catalog) -> str | None:
    """The lowest driver that may know it. Of a product whose own is not known, the lowest of its architecture, where most have one."""
    if board.min_driver is not None:
        return board.min_driver
    relatives = [each.min_driver for each in catalog.gpus if each.architecture == board.architecture and each is not board]
    have = [each for each in relatives if each is not None]
    return min(have, key=key) if len(have) * 2 > len(relatives) else None


def is_driver_unknown(board: Gpu, catalog: Catalog) -> bool:
    """A product so new that nobody has published which driver knows it."""
    return board.kernel_module == "open-only" and first_driver(board, catalog) is None


def unusable(branch: Branch, boards: Iterable[Gpu], catalog: Catalog) -> str | None:
    """Why this branch cannot drive these GPUs, or None."""
    for board in boards:
        if board.max_branch is not None and branch.number > board.max_branch:
            return f"{board.name} has no driver after branch {board.max_branch}"
        floor = board.min_driver_in(branch.number) or first_driver(board, catalog)
        if floor is not None and key(branch.newest) < key(floor):
            return f"{board.name} needs driver {floor} or newer"
        if board.kernel_module == "open-only" and not catalog.module_rules.offers(branch.number, "open"):
            return f"{board.name} needs the open kernel module, which began with branch {catalog.module_rules.open_since}"
    return None


def lowest_version(branch: int, boards: Iterable[Gpu]) -> str | None:
    """The lowest version of the branch that knows all these GPUs; None: any of it."""
    floors = [floor for board in boards if (floor := board.min_driver_in(branch)) is not None]
    return max(floors, key=key, default=None)


def refuse_unlike(settings: Settings, boards: tuple[Gpu, ...]) -> None:
    """GPUs that no kind of module can drive together, or not the kind that is asked for. Raises Refused."""
    closed = [each for each in boards if each.kernel_module == "proprietary-only"]
    opened = [each for each in boards if each.kernel_module == "open-only"]
    way = "set gpu_kernel_module to auto"
    if closed and opened:
        reason = f"{named(closed)} can use only the proprietary kernel module, and {named(opened)} only the open one"
        raise Refused("no-common-module", reason, "put them into different hosts")
    if settings.kernel_module == "open" and closed:
        raise Refused("module-not-for-gpu", f"gpu_kernel_module is open, which {named(closed)} cannot use", way)
    if settings.kernel_module == "proprietary" and opened:
        raise Refused("module-not-for-gpu", f"gpu_kernel_module is proprietary, which {named(opened)} cannot use", way)


def choose_kind(settings: Settings, catalog: Catalog, boards: tuple[Gpu, ...], branch: int, runs: Kind | None) -> Kind:
    """Open modules where all GPUs can use them, as NVIDIA recommends from Turing on; one that runs already stays. Raises Refused.

    + runs: the kind that is loaded and stays, where the branch does
    """
    refuse_unlike(settings, boards)
    offers = catalog.module_rules.offers
    kind: Kind
    if settings.kernel_module != "auto":
        kind = settings.kernel_module
    elif any(each.kernel_module == "proprietary-only" for each in boards) or not offers(branch, "open"):
        kind = "proprietary"
    elif any(each.kernel_module == "open-only" for each in boards):
        kind = "open"
    else:
        kind = runs if runs is not None and offers(branch, runs) else "open"
    if not offers(branch, kind):
        last = catalog.module_rules.proprietary_before
        way = f"set gpu_kernel_module to auto, or name a branch {'below' if kind == 'proprietary' else 'from'} "
        way += str(last if kind == "proprietary" else catalog.module_rules.open_since)
        if kind == "open":
            way += " on"
        raise Refused("no-such-module", f"driver branch {branch} has no {kind} kernel module", way)
    return kind
