"""What the benchmarks measured, held against the floors of the board and against the other hosts of the run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bringup.catalog import Catalog, Floor
from bringup.report import Check, Performance
from bringup.smi import SmiGpu, SmiReport

TOGETHER_LOSS = 0.15  # of a GPU's own speed that may go while all others work: power and air are shared
OUTLIER_MADS = 5.0  # median absolute deviations; and never below a share of the median, since equal hosts have a MAD of nothing
OUTLIER_SHARE = 0.05
UNITS = {"matmul": "TFLOP/s", "launch": "us"}  # all others: GB/s
ODD = "odd among the hosts with"  # begins the note of an outlier
NOT_ON_THIS_GPU = "this GPU has no"


def unit_of(metric: str) -> str:
    return UNITS.get(metric.partition("_")[0], "GB/s")


def floors_of(catalog: Catalog, gpu: SmiGpu, link: str | None = None) -> dict[str, Floor]:
    """By metric: those of this very board. Another subsystem or link of the same chip may be another product, and is not judged."""
    boards = {each.name for each in catalog.gpu_candidates(gpu["pci_id"] or "", gpu["pci_subsystem"])}
    subdevice = (gpu["pci_subsystem"] or "").partition(":")[2]
    return {
        each.metric: each
        for each in catalog.floors
        if each.board in boards and subdevice in each.subdevices and each.link in (None, link)
    }


def judge(metric: str, values: Sequence[float], floor: Floor | None) -> Check:
    """The worst of a host's values against its floor. No floor: not judged; a floor that was not measured only warns."""
    name, unit = f"speed-{metric.replace('_', '-')}", unit_of(metric)
    if not values or not all(math.isfinite(each) and each > 0 for each in values):
        return Check(name, "fail", f"measured {', '.join(str(each) for each in values) or 'nothing'}, which is no result")
    if floor is None:
        worst = max(values) if unit == "us" else min(values)
        said = f"{worst:g} {unit}; the catalog has no floor for this board"
        return Check(name, "not-judged", said, measured=f"{worst:g} {unit}")
    higher = floor.better == "higher"
    worst = min(values) if higher else max(values)
    passed = worst >= floor.limit if higher else worst <= floor.limit
    expected = f"at {'least' if higher else 'most'} {floor.limit:g} {floor.unit}"
    said = f"{worst:g} {floor.unit}, {expected} is expected ({floor.name}: {floor.value.value:g}, {floor.method})"
    return Check(
        name,
        "pass" if passed else "fail" if floor.value.is_firm else "warn",
        said,
        measured=f"{worst:g} {floor.unit}",
        expected=expected,
        margin=round(worst / floor.limit if higher else floor.limit / worst, 4),
    )


def benchmark_checks(
    gpu: Mapping[str, Any], nccl: Mapping[str, Any] | None, seen: SmiReport, catalog: Catalog
) -> tuple[list[Check], list[Check]]:
    """What the two benchmarks (facts.verification.Benchmark) say of function, and of speed."""
    if gpu["skipped"]:
        return [], [Check("speed", "skipped", gpu["skipped"])]
    if gpu["result"] is None:
        return [Check("results", "fail", gpu["problem"] or "the benchmark gave no result")], []
    all_reduce = nccl["result"] if nccl else None
    functional = result_checks(gpu["result"], all_reduce)
    if nccl and all_reduce is None:
        functional.append(Check("nccl", "fail", nccl["problem"] or nccl["skipped"] or "the benchmark gave no result"))
    return functional, speed_checks(gpu["result"], all_reduce, seen, catalog, gpu["link"])


def result_checks(benchmark: Mapping[str, Any], nccl: Mapping[str, Any] | None) -> list[Check]:
    """Are the results right? That is function, not speed: a GPU that computes wrong is not proven however fast it is."""
    failed = benchmark.get("failed")
    if failed:
        return [Check("results", "fail", f"the benchmark ended: {failed}")]
    wrong = [
        f"GPU {gpu['index']}, {name}: {said}"
        for gpu in benchmark["gpus"]
        for name, said in gpu["checks"].items()
        if said is not None
    ]
    wrong += [
        f"GPU {gpu['index']}, {name}: {said}"
        for gpu in benchmark["gpus"]
        for name, said in gpu["not_measured"].items()
        if NOT_ON_THIS_GPU not in said
    ]
    wrong += [f"GPU {each['from']} to {each['to']}: {each['wrong']}" for each in benchmark.get("peers", []) if each["wrong"]]
    unchecked = [str(gpu["index"]) for gpu in benchmark["gpus"] if not gpu["skipped"] and not gpu["checks"]]
    wrong += [f"GPU {each}: no result was checked" for each in unchecked]
    checks = [
        Check("results", "fail", "; ".join(wrong)) if wrong else Check("results", "pass", "all products and copies are right")
    ]
    if nccl and nccl.get("failed"):
        without = nccl.get("without_peer_to_peer") or {}
        helped = bool(without) and not without.get("failed")
        cause = "; without peer-to-peer it works: ACS or an IOMMU in the way of the GPUs (iommu=pt, ACS off)" if helped else ""
        checks.append(Check("nccl", "fail", f"{nccl['failed']}{cause}"))
    elif nccl and nccl.get("wrong"):
        checks.append(Check("nccl", "fail", str(nccl["wrong"])))
    elif nccl and not nccl.get("skipped"):
        checks.append(Check("nccl", "pass", f"a right all-reduce over {nccl.get('gpus')} GPUs, NCCL {nccl.get('nccl')}"))
    interface = (nccl or {}).get("interface") or {}
    if interface.get("asked") and interface["asked"] != interface["used"]:
        have = f"this host's are {', '.join(interface['there'])}: take the setting out of the image"
        checks.append(Check("nccl-interface", "warn", f"the image sets NCCL_SOCKET_IFNAME={interface['asked']}, and {have}"))
    return checks


def speed_checks(
    benchmark: Mapping[str, Any], nccl: Mapping[str, Any] | None, seen: SmiReport, catalog: Catalog, link: str | None = None
) -> list[Check]:
    """Each metric of the host: its worst GPU. `link`: what joins the GPUs (NV18), None where unknown."""
    gpus = [each for each in benchmark.get("gpus", []) if not each["skipped"]]
    boards = {each["pci_address"]: each for each in seen["gpus"]}
    found: dict[str, list[float]] = {}
    checks = [
        Check("speed", "skipped", f"GPU {each['index']}: {each['skipped']}")
        for each in benchmark.get("gpus", [])
        if each["skipped"]
    ]
    for gpu in gpus:
        for metric, value in gpu["alone"].items():
            found.setdefault(metric, []).append(value)
    peers = [each["gb_per_s"] for each in benchmark.get("peers", []) if each["access"] and each["gb_per_s"] is not None]
    if peers:
        found["peer_copy"] = peers
    for metric, value in ((nccl or {}).get("bus_gb_per_s") or {}).items():
        found.setdefault(metric, []).append(value)
    names = {(each["pci_id"], each["pci_subsystem"]) for each in boards.values()}
    floors = floors_of(catalog, next(iter(boards.values())), link) if len(names) == 1 else {}
    checks += [judge(metric, values, floors.get(metric)) for metric, values in found.items()]
    return [*checks, *_link_checks(gpus, boards), *_together(gpus)]


def _link_checks(gpus: Iterable[Mapping[str, Any]], boards: Mapping[str | None, SmiGpu]) -> list[Check]:
    """PCIe under load: an idle link may be slower, and says nothing."""
    slow, known = [], 0
    for gpu in gpus:
        board = boards.get(gpu["pci_address"])
        now = gpu["under_load"].get("h2d_pinned", {})
        for words, key, most in (
            ("generation", "pcie_generation", board and board["link_generation_max"]),
            ("width", "pcie_width", board and board["link_width_max"]),
        ):
            if most is not None and key in now:
                known += 1
                if now[key] < most:
                    slow.append(f"GPU {gpu['index']}: PCIe {words} {now[key]} of {most} under load: reseat the card or riser")
    if slow:
        return [Check("pcie-under-load", "fail", "; ".join(slow))]
    return [Check("pcie-under-load", "pass", "generation and width are the highest possible")] if known else []


def _together(gpus: Iterable[Mapping[str, Any]]) -> list[Check]:
    lost = [
        f"GPU {gpu['index']}: {metric} {value:g} {unit_of(metric)} with all at work, {gpu['alone'][metric]:g} alone"
        for gpu in gpus
        for metric, value in gpu["parallel"].items()
        if metric in gpu["alone"] and value < gpu["alone"][metric] * (1 - TOGETHER_LOSS)
    ]
    return [Check("speed-together", "warn", "; ".join(lost))] if lost else []


def performance(checks: Iterable[Check]) -> Performance:
    """The second word of a host's outcome, from its speed checks. Only what was held against a floor is within floors."""
    found = list(checks)
    if any(each.status == "fail" for each in found):
        return "below"
    if all(each.status == "skipped" for each in found):
        return "not measured"
    return "within floors" if any(each.status == "pass" and each.name.startswith("speed-") for each in found) else "not judged"


def outliers(values: Mapping[str, float]) -> dict[str, str]:
    """Hosts of one model whose value is far from the others': host -> one sentence. Three hosts are needed to name an odd one."""
    if len(values) < 3:
        return {}
    median = statistics.median(values.values())
    mad = statistics.median(abs(each - median) for each in values.values())
    room = max(OUTLIER_MADS * mad, OUTLIER_SHARE * abs(median))
    return {
        host: f"{value:g}, the median of {len(values)} hosts is {median:g} (MAD {mad:g})"
        for host, value in values.items()
        if not math.isfinite(value) or abs(value - median) > room
    }


def fleet_notes(measured: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What is odd about a host among those of its model in the run. `measured`: host -> the result of GpuBenchmark's probe."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for host, result in measured.items():
        for gpu in result.get("gpus", []):
            for metric, value in gpu["alone"].items():
                of_metric = values.setdefault((str(gpu["name"]), metric), {})
                worse = max if unit_of(metric) == "us" else min
                of_metric[host] = worse(value, of_metric.get(host, value))
    notes: dict[str, list[str]] = {}
    for (model, metric), of_hosts in values.items():
        for host, said in outliers(of_hosts).items():
            notes.setdefault(host, []).append(f"{ODD} {model}: {metric} {said}")
    return notes
