"""How the GPUs of a host are joined with each other and with its memory -> checks: NVLink, ACS and IOMMU, NUMA.

What one GPU's links are is held against the other GPUs of its model on the same host, never against a number from memory: an H100 NVL has
12 of 18 links by design.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

from bringup.report import Check
from bringup.smi import SmiGpu
from bringup.survey import PciDevice, Survey, gpus, known


class Topology(TypedDict):
    """What the host says (facts.verification.ContainerGpus); None: it did not.

    nvlink: lines of `nvidia-smi nvlink --status`; acs: `0000:40:01.1 ACSCtl: SrcValid+ …` of each bridge above a GPU; iommu: by GPU, the
    type of its IOMMU group: `identity`, `DMA`, `DMA-FQ`; numa_nodes: how many the host has.
    """

    nvlink: list[str] | None
    acs: list[str] | None
    iommu: dict[str, str]
    numa_nodes: int | None


def topology_checks(found: Topology, seen: Sequence[SmiGpu], survey: Survey) -> list[Check]:
    """Only where there are two GPUs or more: one alone is joined with nothing."""
    if len(seen) < 2:
        return []
    checks = [_nvlink(found["nvlink"], seen), _peers(found, survey), _numa(found["numa_nodes"], gpus(survey))]
    return [each for each in checks if each]


def links(lines: Sequence[str]) -> dict[str, list[str | None]]:
    """GPU's number -> speed of each link, None where it is inactive or disabled. A GPU without NVLink has no link."""
    found: dict[str, list[str | None]] = {}
    current: list[str | None] = []
    for line in lines:
        if gpu := re.match(r"\s*GPU (\d+):", line):
            current = found.setdefault(gpu[1], [])
        elif link := re.match(r"\s*Link \d+:\s*(.+?)\s*$", line):
            current.append(link[1] if re.match(r"\d", link[1]) else None)
    return found


def _nvlink(lines: Sequence[str] | None, seen: Sequence[SmiGpu]) -> Check | None:
    name = "nvlink"
    if lines is None:
        return Check(name, "warn", "the driver does not tell the state of NVLink")
    active = {gpu: sum(each is not None for each in of_gpu) for gpu, of_gpu in links(lines).items()}
    if not any(active.values()):
        return None  # PCIe boards without a bridge, or no NVLink at all; a fabric that is not ready has a check of its own
    most = max(active.values())
    models = {each["name"] for each in seen}
    fewer = [f"GPU {gpu}: {count} of {most} links are up" for gpu, count in active.items() if count < most]
    if fewer and len(models) == 1:
        return Check(name, "fail", f"{'; '.join(fewer)}: reset the GPU or reboot; when it comes again have the board looked at")
    if fewer:
        return Check(name, "warn", f"{'; '.join(fewer)} (boards of several models)")
    slow = {each for of_gpu in links(lines).values() for each in of_gpu if each is not None}
    if len(slow) > 1:
        return Check(name, "warn", f"links of several speeds: {', '.join(sorted(slow))}")
    return Check(name, "pass", f"{most} links of each GPU are up, {next(iter(slow))} each")


def _peers(found: Topology, survey: Survey) -> Check | None:
    """ACS and a translating IOMMU send traffic between GPUs over the root complex. A guest cannot change that."""
    name = "peer-to-peer"
    redirecting = [each.split()[0] for each in found["acs"] or [] if re.search(r"\bReqRedir\+|\bCmpltRedir\+|\bSrcValid\+", each)]
    translated = sorted(gpu for gpu, kind in found["iommu"].items() if kind.startswith("DMA"))
    guest = known(survey["virtualization"])
    if not redirecting and not translated:
        unknown = found["acs"] is None and not found["iommu"]
        return None if unknown else Check(name, "pass", "neither ACS nor the IOMMU is in the way between the GPUs")
    said = [f"ACS is on at {', '.join(redirecting)}"] if redirecting else []
    said += [f"the IOMMU translates for {', '.join(translated)}"] if translated else []
    if guest not in (None, "none"):
        return Check(name, "pass", f"{'; '.join(said)}: in a guest ({guest}) that is the provider's")
    cures = [f"setpci -s {each} ECAP_ACS+0x6.w=0000" for each in redirecting]
    cures += ["iommu=pt on the kernel's command line"] if translated else []
    return Check(name, "warn", f"{'; '.join(said)}, which slows or breaks peer-to-peer: {'; '.join(cures)}")


def _numa(nodes: int | None, devices: Sequence[PciDevice]) -> Check | None:
    name = "numa"
    if nodes is None or nodes < 2:
        return None
    lost = [each["address"] for each in devices if each["numa_node"] is None or each["numa_node"] < 0]
    if lost:
        said = f"the firmware does not tell which of {nodes} memory nodes {', '.join(lost)} is at"
        return Check(name, "warn", f"{said}: programs cannot be bound to the near one")
    where: dict[int, int] = {}
    for each in devices:
        where[each["numa_node"] or 0] = where.get(each["numa_node"] or 0, 0) + 1
    return Check(name, "pass", "; ".join(f"node {node}: {count} GPUs" for node, count in sorted(where.items())))
