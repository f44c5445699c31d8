"""Relations of NVLink's fabric: switches, Fabric Manager, guests and racks."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.driver import gpus_of
from bringup.doctor.relations.registry import relation


def _fabric_unit(facts: Facts) -> str:
    return facts.command(r"systemctl\b.*fabricmanager") or ""


@relation
def fabric_manager_does_not_run(facts: Facts) -> list[str]:
    found = re.search(r"^.*(?:\binactive\b|\bfailed\b|could not be found|\bunknown\b|not-found).*$", _fabric_unit(facts), re.M)
    return [f"nvidia-fabricmanager: {found[0].strip()}"] if found else []


@relation
def fabric_manager_runs(facts: Facts) -> list[str]:
    return ["nvidia-fabricmanager is active"] if re.search(r"^\s*active\b|Active: active", _fabric_unit(facts), re.M) else []


@relation
def has_nvswitch(facts: Facts) -> list[str]:
    if facts.switch_lines:
        return [facts.switch_lines[0].strip()]
    names = [each.name for each in gpus_of(facts) if each.fabric_manager == "with-nvlink5"]
    return [f"{names[0]} with NVLink 5"] if names and not facts.virtual else []


@relation
def switches_without_fabric_manager(facts: Facts) -> list[str]:
    switches, down = has_nvswitch(facts), fabric_manager_does_not_run(facts)
    return [*switches, *down] if switches and down else []


@relation
def no_nvswitch(facts: Facts) -> list[str]:
    if not facts.has_lspci or facts.switch_lines:
        return []
    if any(each.fabric_manager == "with-nvlink5" for each in gpus_of(facts)):
        return []
    counted = facts.command(r"lspci\b.*(?:0680|nvswitch)")
    if counted is not None and counted.strip() in ("0", ""):
        return ["lspci shows no NVSwitch"]
    return ["lspci shows no NVSwitch"] if facts.gpu_lines or facts.command(r"\blspci\b") else []


@relation
def sxm_gpu_in_a_guest_without_nvswitch(facts: Facts) -> list[str]:
    sxm = [each.name for each in gpus_of(facts) if each.fabric_manager in ("with-nvswitch", "with-nvlink5")]
    if facts.virtual and not facts.switch_lines and (sxm or re.search(r"\bSXM\d?\b|HGX", "\n".join(facts.gpu_lines))):
        return [f"a virtual machine with {sxm[0] if sxm else 'an SXM GPU'}, and no NVSwitch"]
    return []


@relation
def guest_waits_for_its_fabric(facts: Facts) -> list[str]:
    waits = re.search(r"Fabric\s*\n\s*State\s*:\s*In Progress|<fabric>\s*<state>In Progress", facts.everything)
    return sxm_gpu_in_a_guest_without_nvswitch(facts) if waits else []


@relation
def rack_fabric(facts: Facts) -> list[str]:
    names = [each.name for each in gpus_of(facts) if each.fabric_manager == "imex"]
    found = next((line.strip() for line in facts.gpu_lines if re.search(r"GB[23]00", line)), None)
    return [f"{names[0]}: its fabric is managed on the rack's switch trays"] if names else [found] if found else []


@relation
def rack_with_fabric_manager(facts: Facts) -> list[str]:
    """Fabric Manager is there, or was tried, where the rack does its work."""
    rack, manager = rack_fabric(facts), fabric_manager_does_not_run(facts)
    return [*rack, *manager] if rack and manager else []


@relation
def asked_json_says_802(facts: Facts) -> list[str]:
    """One way to count GPUs works, and the runtime's does not."""
    found = re.search(r'"nvml_count":\s*[1-9].*"cudaGetDeviceCount":\s*"[^"]*802[^"]*"', facts.everything)
    return [found[0]] if found else []
