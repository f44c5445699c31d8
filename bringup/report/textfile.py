"""A host's result -> metrics in Prometheus' text format, for node_exporter's textfile collector on the host itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bringup.report import HostResult

STATUSES = ("pass", "warn", "fail", "not-judged", "skipped")
NAME = "gpu_bringup.prom"


def metrics(result: HostResult) -> str:
    """Without how the run ended, which is not known yet when they are written, and without times.

    The file changes when the result does; when it was written node_exporter tells.
    """
    counts: Counter[str] = Counter(each.status for each in result.checks)
    failed = [each.name for each in result.checks if each.status == "fail"]
    labels: dict[str, str] = {"performance": result.performance, "hardware": result.hardware}
    lines = [
        *_metric(
            "gpu_bringup_proven", "1: every functional proof of the last run passed", [({}, int(result.function == "proven"))]
        ),
        *_metric("gpu_bringup_performance", "the word on the host's speed, as a label", [(labels, 1)]),
        *_metric(
            "gpu_bringup_checks", "checks of the last proof by outcome", [({"status": each}, counts[each]) for each in STATUSES]
        ),
        *_metric("gpu_bringup_check_failed", "checks that failed", [({"check": each}, 1) for each in failed]),
    ]
    return "\n".join(lines) + "\n"


def _metric(name: str, help_: str, values: Iterable[tuple[dict[str, str], int]]) -> list[str]:
    rows = [f"{name}{_labels(labels)} {value}" for labels, value in values]
    return [f"# HELP {name} {help_}", f"# TYPE {name} gauge", *rows] if rows else []


def _labels(labels: dict[str, str]) -> str:
    escaped = (
        f'{key}="{value.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34)).replace(chr(10), chr(92) + "n")}"'
        for key, value in labels.items()
    )
    return f"{{{','.join(escaped)}}}" if labels else ""
