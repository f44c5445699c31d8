"""What a benchmark gives: numbers beside their targets. Nothing is asserted: who reads them judges."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """One number. `target`: at most this (None: only told)."""

    name: str
    value: float
    unit: str
    target: float | None = None

    @property
    def ratio(self) -> float | None:
        """Value over target: at most 1 is within it."""
        return self.value / self.target if self.target else None

    @property
    def line(self) -> str:
        line = f"{self.name:<60}{_short(self.value):>9} {self.unit:<6}"
        if self.target is None:
            return line.rstrip()
        ratio = f"{self.ratio:6.2f} of it" if self.ratio is not None else ""
        return f"{line}target {_short(self.target):>7} {self.unit:<6}{ratio}".rstrip()


def _short(value: float) -> str:
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def median_s(run: Callable[[], object], times: int) -> float:
    """Median wall time of some runs, in seconds, after one that is not counted."""
    run()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return statistics.median(found)
