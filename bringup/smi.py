"""nvidia-smi's XML (`nvidia-smi -q -x`) -> typed records. What a driver does not say is None, never a guess."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import TypedDict


class SmiGpu(TypedDict):
    """One GPU as nvidia-smi sees it."""

    name: str | None
    uuid: str | None
    pci_address: str | None  # 0000:00:06.0, lower case
    memory_total_mib: int | None
    memory_used_mib: int | None
    pci_id: str | None  # 10de:2335
    pci_subsystem: str | None  # 10de:18be
    ecc: str | None
    ecc_uncorrectable: int | None  # since the driver was loaded
    remap_pending: bool | None  # of rows, or of pages on boards before Ampere
    remap_failure: bool | None
    mig: str | None
    mig_pending: str | None
    mig_devices: int | None
    persistence: str | None
    performance_state: str | None
    link_generation: int | None
    link_generation_max: int | None
    link_width: int | None
    link_width_max: int | None
    event_reasons: list[str] | None  # why the clocks are not higher: hw_thermal_slowdown, without gpu_idle
    fabric_state: str | None
    fabric_status: str | None
    recovery_action: str | None  # what the driver asks for: Reset, Reboot; "None" when nothing
    temperature_c: int | None
    power_w: float | None


class SmiReport(TypedDict):
    driver_version: str | None
    cuda_version: str | None
    gpus: list[SmiGpu]


class SmiError(ValueError):
    """The text is no XML of nvidia-smi: one sentence."""


NOTHING = {"n/a", "not supported", "requested functionality has been deprecated", "unknown error", "err!", ""}  # also in brackets
END = "</nvidia_smi_log>"
LINK = "pci/pci_gpu_link_info"
PENDING_PAGES = ("pending_retirement", "pending_blacklist")  # the newer name, and that of drivers before 470
REASONS = ("clocks_event_reasons", "clocks_throttle_reasons")  # the newer name, and that of drivers before 535


def parse_smi(text: str) -> SmiReport:
    """Raises SmiError. Anything before and after the XML (warnings, such as the one of a corrupted infoROM) is ignored."""
    start = text.find("<nvidia_smi_log")
    if start < 0:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise SmiError(f"nvidia-smi printed no XML but: {first[:200]}")
    body, end, _ = text[start:].partition(END)
    try:
        root = ElementTree.fromstring(body + end)  # noqa: S314 (from a host that we administer; no external entities in expat)
    except ElementTree.ParseError as error:
        raise SmiError(f"nvidia-smi's XML is broken: {error}") from None
    return SmiReport(
        driver_version=_text(root, "driver_version"),
        cuda_version=_text(root, "cuda_version"),
        gpus=[_gpu(each) for each in root.findall("gpu")],
    )


def _text(element: ElementTree.Element, path: str) -> str | None:
    found = element.findtext(path)
    return None if found is None or found.strip().strip("[]").lower() in NOTHING else found.strip()


def _number(element: ElementTree.Element, *paths: str) -> float | None:
    for path in paths:
        found = re.match(r"-?\d+(\.\d+)?", _text(element, path) or "")
        if found:
            return float(found.group())
    return None


def _whole(element: ElementTree.Element, *paths: str) -> int | None:
    found = _number(element, *paths)
    return None if found is None else int(found)


def _gpu(element: ElementTree.Element) -> SmiGpu:
    address = _text(element, "pci/pci_bus_id") or element.get("id")
    return SmiGpu(
        name=_text(element, "product_name"),
        uuid=_text(element, "uuid"),
        pci_address=re.sub(r"^0000(?=\w{4}:)", "", address).lower() if address else None,
        memory_total_mib=_whole(element, "fb_memory_usage/total"),
        memory_used_mib=_whole(element, "fb_memory_usage/used"),
        pci_id=_pci_id(element, "pci/pci_device_id"),
        pci_subsystem=_pci_id(element, "pci/pci_sub_system_id"),
        ecc=_text(element, "ecc_mode/current_ecc"),
        ecc_uncorrectable=_uncorrectable(element.find("ecc_errors/volatile")),
        remap_pending=_yes(element, "remapped_rows/remapped_row_pending", *(f"retired_pages/{each}" for each in PENDING_PAGES)),
        remap_failure=_yes(element, "remapped_rows/remapped_row_failure"),
        mig=_text(element, "mig_mode/current_mig"),
        mig_pending=_text(element, "mig_mode/pending_mig"),
        mig_devices=len(devices.findall("mig_device")) if (devices := element.find("mig_devices")) is not None else None,
        persistence=_text(element, "persistence_mode"),
        performance_state=_text(element, "performance_state"),
        link_generation=_whole(element, f"{LINK}/pcie_gen/current_link_gen"),
        link_generation_max=_whole(element, f"{LINK}/pcie_gen/max_link_gen"),
        link_width=_whole(element, f"{LINK}/link_widths/current_link_width"),
        link_width_max=_whole(element, f"{LINK}/link_widths/max_link_width"),
        event_reasons=_event_reasons(element),
        fabric_state=_text(element, "fabric/state"),
        fabric_status=_text(element, "fabric/status"),
        recovery_action=_text(element, "gpu_recovery_action"),
        temperature_c=_whole(element, "temperature/gpu_temp"),
        power_w=_number(
            element, "gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"
        ),
    )


def _yes(element: ElementTree.Element, *paths: str) -> bool | None:
    """The first path that says Yes or No."""
    for path in paths:
        found = _text(element, path)
        if found is not None and found.lower() in ("yes", "no"):
            return found.lower() == "yes"
    return None


def _pci_id(element: ElementTree.Element, path: str) -> str | None:
    """10de:2335 of 233510DE."""
    found = re.fullmatch(r"(?:0x)?([0-9a-f]{4})([0-9a-f]{4})", (_text(element, path) or "").lower())
    return f"{found.group(2)}:{found.group(1)}" if found else None


def _uncorrectable(volatile: ElementTree.Element | None) -> int | None:
    """The sum over the kinds of memory; drivers say `double_bit/total`, or one number for each kind."""
    if volatile is None:
        return None
    total = _whole(volatile, "double_bit/total")
    kinds = [each.tag for each in volatile if "uncorrectable" in each.tag]
    counts = [count for each in kinds if (count := _whole(volatile, each)) is not None]
    return total if total is not None else sum(counts) if counts else None


def _event_reasons(element: ElementTree.Element) -> list[str] | None:
    for name in REASONS:
        found = element.find(name)
        if found is not None:
            active = [each.tag for each in found if (each.text or "").strip() == "Active"]
            short = [each.removeprefix(f"{name.removesuffix('s')}_") for each in active]
            return [each for each in short if each != "gpu_idle"]
    return None
