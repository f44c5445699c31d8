"""Relations of limits and starts: /dev/shm, memlock, persistence, the time that CUDA needs to start."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.registry import relation


@relation
def shm_small(facts: Facts) -> list[str]:
    for match in re.finditer(
        r"^\s*(?:shm|tmpfs)\s+(\d+)([KMG]?)\S*\s.*?(/dev/shm)?\s*$", facts.command(r"\bdf\b.*shm|df -[hmk]+\s*$") or "", re.M
    ):
        unit = match[2] or (
            "M" if re.search(r"df -\w*m", facts.sources[0].name + "".join(each.name for each in facts.sources)) else "K"
        )
        size = int(match[1]) * {"K": 1, "M": 1024, "G": 1 << 20}[unit]
        if size <= 64 * 1024 and (match[3] or match[0].lstrip().startswith("shm")):
            return [match[0].strip()]
    return []


@relation
def memlock_small(facts: Facts) -> list[str]:
    inside = facts.command(r"(?:docker|podman|nerdctl) (?:run|exec)\b.*ulimit")
    found = re.search(r"^\s*(?:.*max locked memory.*\s)?(64|8192|65536|16384)\s*$", inside or "", re.M)
    if found:
        return [f"memlock in a container: {found[1]} KiB"]
    found = re.search(r"^.*Max locked memory\s+(?:65536|8388608|67108864)\s.*$", facts.everything, re.M)
    dockerd = any(re.search(r"/limits|dockerd|containerd", each.name) for each in facts.sources)
    return [found[0].strip()] if found and dockerd else []


@relation
def persistence_off(facts: Facts) -> list[str]:
    rows = facts.command(r"persistence_mode") or ""
    found = re.search(r"^.*\bDisabled\b.*$", rows, re.M)
    found = found or re.search(
        r"^.*(?:Persistence Mode\s*:\s*Disabled|\"persistence_mode\":\s*\"Disabled\").*$", facts.everything, re.M
    )
    return [found[0].strip()] if found else []


@relation
def cuda_init_slow(facts: Facts) -> list[str]:
    """Seconds until CUDA is there, and quick once something keeps the driver up."""
    times: dict[str, float] = {}
    for each in facts.sources:
        for name, value in re.findall(
            r"\"?(t_cuinit_s|t_cuinit_warm_s|cu_init_s|t_first_kernel_s)\"?\s*[:=]\s*([\d.]+)", each.text
        ):
            times[name] = float(value.rstrip("."))
    cold = times.get("t_cuinit_s", times.get("cu_init_s", 0.0))
    return [f"cuInit takes {cold} s"] if cold >= 5 else []
