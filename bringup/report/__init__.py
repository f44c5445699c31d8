"""Results of a run: one schema, a JSON file per host, and from it everything that people read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

SCHEMA: Literal[1] = 1

# how the run ended for a host; `planned`: nothing was done (--dry), `done`: its stages ran and no proof was asked for
Ended = Literal["done", "failed", "refused", "unreachable", "stopped", "planned"]
Function = Literal["proven", "not proven", "not asked"]
Performance = Literal["within floors", "below", "not judged", "not measured"]
Status = Literal["pass", "warn", "fail", "not-judged", "skipped"]
Hardware = Literal["real", "simulated", "unknown"]


@dataclass
class Check:
    """One thing that was looked at; a skipped one has its reason in `detail`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    name: str
    status: Status
    detail: str = ""
    measured: str = ""  # with its unit; like `expected`, only where `detail` is about such a pair
    expected: str = ""
    margin: float | None = None  # how many times as good as the worst that passes: below 1 is below the floor
    remedy: str = ""  # what to do about one that is not passed


Step = dict[str, str]


@dataclass
class HostResult:
    """All that one run found out about one host."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    host: str
    run: str
    schema: Literal[1] = SCHEMA
    revision: str = ""
    ended: Ended = "stopped"
    function: Function = "not asked"
    performance: Performance = "not measured"
    hardware: Hardware = "unknown"
    problems: list[str] = field(default_factory=list)  # one sentence each, the first is why it failed
    summary: dict[str, str] = field(default_factory=dict)  # what the host is: gpu, system, driver, docker, image
    planned: list[Step] = field(default_factory=list)  # step, why, what
    skipped: list[Step] = field(default_factory=list)  # step, why
    changed: list[str] = field(default_factory=list)  # steps that executed something
    notes: list[str] = field(default_factory=list)  # what people should know, and nothing failed for
    reboots: int = 0
    checks: list[Check] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Does this host let the run exit 0?"""
        return self.ended in ("done", "planned") and self.function != "not proven" and self.performance != "below"

    def unplanned(self) -> list[str]:
        """Changed and not planned. Only steps: built-in operations of other deploys have no plan."""
        return [each for each in self.changed if each not in {step["step"] for step in self.planned}]

    def as_json(self) -> dict[str, Any]:
        return {key: _finite(each) for key, each in asdict(self).items()}


def _finite(value: Any) -> Any:
    """JSON has no NaN: a result that is no number is written as its name, which no reader takes for one."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
