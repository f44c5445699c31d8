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
    ecc: str | None
    mig: str | None
    persistence: str | None
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
        ecc=_text(element, "ecc_mode/current_ecc"),
        mig=_text(element, "mig_mode/current_mig"),
        persistence=_text(element, "persistence_mode"),
        temperature_c=_whole(element, "temperature/gpu_temp"),
        power_w=_number(
            element, "gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"
        ),
    )
