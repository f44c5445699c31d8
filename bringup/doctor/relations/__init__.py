"""Relations between sources: each a small pure function of the facts that gives the lines that show it, or none."""

from __future__ import annotations

from bringup.doctor.facts import Facts
from bringup.doctor.relations import (
    apt,
    build,
    cdi,
    compat,
    daemon_json,
    docker,
    driver,
    fabric,
    health,
    kernel,
    limits,
    nccl,
    pulls,
    toolkit,
)
from bringup.doctor.relations.registry import RELATIONS, Relation

__all__ = [
    "RELATIONS", "Relation", "apt", "ask", "build", "cdi", "compat", "daemon_json", "docker", "driver", "fabric", "health", "kernel",
    "limits", "nccl", "pulls", "toolkit",
]  # fmt: skip


def ask(name: str, facts: Facts) -> list[str]:
    """The lines that show a relation, by its name (`loaded-differs-from-installed`). Raises KeyError for an unknown one."""
    return RELATIONS[name](facts)
