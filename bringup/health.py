"""nvidia-smi's report and the kernel log -> checks of the hardware's health. What a driver does not say is named, never a pass."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from bringup.catalog import Catalog
from bringup.report import Check
from bringup.smi import SmiGpu, SmiReport

XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")
HARD_REASONS = {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}


def health_checks(report: SmiReport, kernel_log: Sequence[str] | None, catalog: Catalog) -> list[Check]:
    """`kernel_log`: its lines since boot that name an Xid; None where it could not be read."""
    gpus = report["gpus"]
    each_gpu: list[tuple[str, Callable[[SmiGpu], str | None], str, str]] = [
        ("gpus-answer", _lost, "fail", "every GPU tells its name"),
        ("recovery", _recovery, "fail", "the driver asks for no reset"),
        ("row-remapping", _remapping, "fail", "no row waits for a spare one, none failed to get it"),
        ("ecc", _ecc, "fail", "no uncorrectable error since the driver was loaded"),
        ("pcie-width", _width, "fail", "every link is as wide as it can be"),
        ("fabric", _fabric, "fail", "ready, or not needed"),
        ("mig", _mig, "fail", "as it was set"),
        ("clocks", _clocks, "warn", "nothing slows them down"),
    ]
    checks = [xids(kernel_log, catalog)]
    for name, problem, verdict, fine in each_gpu:
        said = [f"GPU {gpu['pci_address'] or index}: {found}" for index, gpu in enumerate(gpus) if (found := problem(gpu))]
        checks.append(
            Check(name, "fail" if verdict == "fail" else "warn", "; ".join(said)) if said else Check(name, "pass", fine)
        )
    layout = [f"GPU {gpu['pci_address'] or at}: {gpu['mig_devices']}" for at, gpu in enumerate(gpus) if gpu["mig"] == "Enabled"]
    if layout:
        checks.append(Check("mig-layout", "pass", f"MIG instances of {'; '.join(layout)}"))
    silent = _not_said(gpus)
    if silent:
        checks.append(Check("health-unknown", "warn", f"the driver does not tell: {', '.join(silent)}"))
    return checks


def xids(kernel_log: Iterable[str] | None, catalog: Catalog) -> Check:
    """The worst first. Codes that the catalog does not know are a warning: unknown is no pass, and refuses nothing."""
    name = "xid"
    if kernel_log is None:
        return Check(name, "warn", "the kernel log could not be read, so whether the driver wrote errors to it is not known")
    seen: Counter[tuple[int, str]] = Counter()
    for line in kernel_log:
        found = XID.search(line)
        if found:
            seen[int(found.group(2)), found.group(1)] += 1
    if not seen:
        return Check(name, "pass", "none in the kernel log since boot")
    bad, said = False, []
    for (code, address), count in sorted(seen.items(), key=lambda item: (not _is_bad(item[0][0], catalog), item[0])):
        known = catalog.xid(code)
        bad = bad or _is_bad(code, catalog)
        recalled = (
            " (from memory, so it only warns)" if known and known.verdict == "fail" and not known.is_broken_hardware else ""
        )
        what = f"{known.meaning}: {known.action}{recalled}" if known else "not in our table: look it up in NVIDIA's Xid catalog"
        said.append(f"Xid {code} ({count} ×) of GPU {address}: {what}")
    return Check(name, "fail" if bad else "warn", "; ".join(said))


def _is_bad(code: int, catalog: Catalog) -> bool:
    known = catalog.xid(code)
    return known is not None and known.is_broken_hardware


def _lost(gpu: SmiGpu) -> str | None:
    """nvidia-smi lists a GPU that fell off the bus, with errors in place of its values."""
    silent = gpu["name"] is None or "lost" in (gpu["uuid"] or "").lower()
    return "it does not answer (lost from the bus): power-cycle the host, and look for Xid 79" if silent else None


def _recovery(gpu: SmiGpu) -> str | None:
    action = gpu["recovery_action"]
    return None if action in (None, "None") else f"the driver asks for: {action}"


def _remapping(gpu: SmiGpu) -> str | None:
    """A failure is for ever; what is pending is done by a reset."""
    if gpu["remap_failure"]:
        return "a broken memory row could not be replaced: replace the card"
    return "a memory row waits for its spare one: reset the GPU or reboot, then check again" if gpu["remap_pending"] else None


def _ecc(gpu: SmiGpu) -> str | None:
    count = gpu["ecc_uncorrectable"]
    return (
        f"{count} uncorrectable memory errors since the driver was loaded: reset the GPU or reboot, then check again"
        if count
        else None
    )


def _width(gpu: SmiGpu) -> str | None:
    """The width does not change with the load; the generation does, and is judged under load alone."""
    now, most = gpu["link_width"], gpu["link_width_max"]
    return (
        f"its PCIe link is x{now} of x{most}: reseat the card or riser"
        if now is not None and most is not None and now < most
        else None
    )


def _fabric(gpu: SmiGpu) -> str | None:
    state, status = gpu["fabric_state"], gpu["fabric_status"]
    if state in (None, "Completed") and status in (None, "Success"):
        return None
    if state == "In Progress":
        return (
            "its NVLink fabric is still in progress (CUDA error 802): on a machine of its own start nvidia-fabricmanager of the driver's"
            " version; in a virtual machine the provider must activate the NVLink partition"
        )
    return f"its NVLink fabric is {state or 'in no known state'}, status {status or 'unknown'}: look at the log of nvidia-fabricmanager"


def _mig(gpu: SmiGpu) -> str | None:
    mode, pending = gpu["mig"], gpu["mig_pending"]
    if mode and pending and mode != pending:
        return f"MIG is {mode} and {pending} is pending: end what uses the GPU, then reset it or reboot"
    if mode == "Enabled" and gpu["mig_devices"] == 0:
        return "MIG is on without any instance, so CUDA has no device: make instances anew after each boot, or switch MIG off"
    return None


def _clocks(gpu: SmiGpu) -> str | None:
    hard = [each for each in gpu["event_reasons"] or [] if each in HARD_REASONS]
    return f"slowed down by {', '.join(hard)}: look at its cooling and power" if hard else None


def _not_said(gpus: Sequence[SmiGpu]) -> list[str]:
    asked = {"PCIe width": "link_width", "clocks' reasons": "event_reasons"}
    return [words for words, key in asked.items() if any(gpu[key] is None for gpu in gpus)]  # type: ignore[literal-required]
