"""Relations of the GPUs' health and MIG: row remaps, PCIe links, modes that are pending."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.registry import relation


def _table(facts: Facts, *columns: str) -> list[dict[str, str]]:
    """Rows of nvidia-smi's CSV with these columns, by its heading or by the command that asked."""
    for each in facts.sources:
        lines = [line for line in each.text.split("\n") if "," in line]
        asked = re.search(r"--query-gpu=(\S+)", each.name)
        heading = [part.strip().split(" ")[0] for part in lines[0].split(",")] if lines else []
        names = heading if set(columns) <= set(heading) else asked[1].split(",") if asked else []
        if set(columns) <= set(names):
            rows = [[part.strip() for part in line.split(",")] for line in lines]
            return [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names) and row[0] != names[0]]
    return []


@relation
def pcie_link_narrow(facts: Facts) -> list[str]:
    """Fewer lanes than it can have, or a slow link under load; a slow link of an idle GPU saves power."""
    for row in _table(facts, "pcie.link.width.current", "pcie.link.width.max"):
        now, most = row["pcie.link.width.current"], row["pcie.link.width.max"]
        if now.isdigit() and most.isdigit() and int(now) < int(most):
            return [f"link of {now} lanes, it can have {most}: {', '.join(row.values())}"]
    for row in _table(facts, "pcie.link.gen.current", "pcie.link.gen.max", "pstate"):
        now, most = row["pcie.link.gen.current"], row["pcie.link.gen.max"]
        if now.isdigit() and most.isdigit() and int(now) < int(most) and row["pstate"] in ("P0", "P1", "P2"):
            return [f"link of generation {now} under load, it can have {most}: {', '.join(row.values())}"]
    found = re.search(r"LnkSta:.*Width x(\d+)\s*\(downgraded\)", facts.everything)
    return [found[0]] if found else []


@relation
def remap_pending(facts: Facts) -> list[str]:
    return _remap(facts, r"<remapped_row_pending>\s*Yes|Remapped Rows[\s\S]{0,160}?Pending\s*:\s*Yes", "a row remap is pending")


@relation
def remap_failed(facts: Facts) -> list[str]:
    return _remap(facts, r"<remapped_row_failure>\s*Yes|Remapping Failure Occurred\s*:\s*Yes", "a row remap has failed")


def _remap(facts: Facts, pattern: str, what: str) -> list[str]:
    return [what] if re.search(pattern, facts.everything, re.I) else []


@relation
def mig_mode_pending(facts: Facts) -> list[str]:
    name = next((each.name for each in facts.sources if "mig.mode.current" in each.name and "pending" in each.name), None)
    text = facts.command(r"mig\.mode\.current.*pending") if name else ""
    for line in (text or "").split("\n"):
        states = re.findall(r"\b(Enabled|Disabled)\b", line)
        if len(states) == 2 and states[0] != states[1]:
            return [f"MIG mode is {states[0]}, pending {states[1]}: {line.strip()}"]
    found = re.search(r"MIG Mode\s*\n\s*Current\s*:\s*(\w+)\s*\n\s*Pending\s*:\s*(\w+)", facts.everything)
    if found and found[1] != found[2] and "N" not in (found[1][0], found[2][0]):
        return [f"MIG mode is {found[1]}, pending {found[2]}"]
    return []


@relation
def mig_without_instances(facts: Facts) -> list[str]:
    on = re.search(
        r"^.*(?:mig\.mode\.current\D{0,4}Enabled|MIG Mode\s*\n\s*Current\s*:\s*Enabled|<current_mig>Enabled).*$",
        facts.everything,
        re.M,
    )
    text = facts.command(r"mig\.mode\.current(?!.*pending)") or ""
    on = on or re.search(r"^.*\bEnabled\b.*$", text, re.M)
    listing = facts.command(r"nvidia-smi (?:-L|--list-gpus|mig -lgi)")
    if on and listing is not None and not re.search(r"^\s*MIG \S|MIG-[0-9a-f-]{8}", listing, re.M):
        return ["MIG is enabled, and nvidia-smi -L lists no MIG device"]
    return []
