"""From the stamps of one container start to its stages, in milliseconds."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

STAGES = (
    "create", "start", "interpreter", "import_torch", "dlopen_libcuda", "cu_init", "is_available",
    "context", "first_kernel", "other_gpus", "exit",
)  # fmt: skip
WAYS = ("cdi", "runtime", "bare")  # how a program comes to its GPU; bare: without a container
MAX_DRIFT_NS = 1_000_000  # a sample in which wall clock and monotonic clock differ by more is void (design §6)
P95_FROM, P99_FROM = 20, 100  # samples below which such a percentile says nothing


class Sample(TypedDict):
    """One start. `stages_ms` holds those that were reached; `failed` is None when the last kernel's result was right."""

    stages_ms: dict[str, float]
    unattributed_ms: float | None
    total_ms: float
    failed: str | None  # "cu_init: RuntimeError: cuInit returned 100"
    void: str | None
    probe: dict[str, Any]


def docker_ns(text: str) -> int:
    """Docker's RFC 3339 time in nanoseconds since the epoch. Raises ValueError."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", text)
    if found is None:
        raise ValueError(f"{text!r} is no time as Docker writes it")
    whole, fraction, zone = found.groups()
    seconds = int(datetime.fromisoformat(whole + zone.replace("Z", "+00:00")).timestamp())
    return seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def sample(before: int, created: int, after: int, started: str, exit_code: int, output: Iterable[str]) -> Sample:
    """Clock stamps in ns: before `docker create`, after it, after `docker start -a` returned; Docker's StartedAt; the probe's output."""
    lines = list(output)
    probe: dict[str, Any] = {}
    for line in reversed(lines):
        if line.startswith("{"):
            try:
                probe = json.loads(line)
            except ValueError:
                continue
            break
    total_ms = (after - before) / 1e6
    if not probe.get("stamps"):
        last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
        why = f"the probe gave no result (exit {exit_code}): {last[:300]}"
        return Sample(stages_ms={}, unattributed_ms=None, total_ms=total_ms, failed=why, void=None, probe={})
    # Docker notes StartedAt once the runtime has answered: on a busy host that is after the program has begun
    began = min(docker_ns(started), int(probe["stamps"][0][1]))
    stamps: list[tuple[str, int]] = [("create", created), ("start", began), *((name, int(at)) for name, at in probe["stamps"])]
    stages: dict[str, float] = {}
    previous = before
    for name, at in stamps:
        if name != "end":
            stages[name] = round((at - previous) / 1e6, 3)
        previous = at
    stages["exit"] = round((after - previous) / 1e6, 3)
    failed = probe.get("failed")
    end_ms = (stamps[-1][1] - stamps[-2][1]) / 1e6
    return Sample(
        stages_ms=stages,
        unattributed_ms=round(end_ms, 3),
        total_ms=round(total_ms, 3),
        failed=f"{failed['stage']}: {failed['error']}" if failed else None,
        void=void(stages, probe),
        probe={key: value for key, value in probe.items() if key not in ("stamps", "failed")},
    )


def void(stages: Mapping[str, float], probe: Mapping[str, Any]) -> str | None:
    """Why the times of this sample mean nothing, or None."""
    if abs(int(probe.get("clock_drift_ns", 0))) > MAX_DRIFT_NS:
        return "the clock was set during the measurement"
    negative = [name for name, value in stages.items() if value < 0]
    return f"negative time for {negative[0]}" if negative else None


def summary(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """Per stage: min, median, max, and percentiles where there are samples enough. Void and failed samples are left out."""
    good = [each for each in samples if each["void"] is None and each["failed"] is None]
    found: dict[str, dict[str, float]] = {}
    for name in (*STAGES, "total"):
        values = sorted(
            each["total_ms"] if name == "total" else each["stages_ms"][name]
            for each in good
            if name == "total" or name in each["stages_ms"]
        )
        if not values:
            continue
        found[name] = {"min": values[0], "median": round(statistics.median(values), 3), "max": values[-1]}
        for percent, needed in ((95, P95_FROM), (99, P99_FROM)):
            if len(values) >= needed:
                found[name][f"p{percent}"] = values[min(len(values) - 1, -(-len(values) * percent // 100) - 1)]
    return found
