"""Plans -> a table for people, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bringup.plan import Plan, Refusal

Found = Plan | Refusal | str  # a plan, why not, or why there is no survey
COLUMNS = ("host", "GPU", "driver", "Docker", "image", "reboots", "steps")


def plan_lines(found: Mapping[str, Found], summaries: Mapping[str, Mapping[str, str]], *, verbose: bool) -> list[str]:
    """A row per host; a refused host's row holds the reason. With `verbose`, each row is followed by its steps and their reasons."""
    rows: list[tuple[Sequence[str], list[str]]] = [(COLUMNS, [])]
    for host, each in sorted(found.items()):
        summary = summaries.get(host, {})
        if isinstance(each, Plan):
            shown = [f"only shown: {each.only_shown}"] if each.only_shown else []
            rows.append((_row(host, each, summary), [*shown, *(_details(each) if verbose else [])]))
        elif isinstance(each, Refusal):
            rows.append(((host, summary.get("gpu", "?")), [f"refused ({each.id}): {each}"]))
        else:
            rows.append(((host,), [f"no survey: {each}"]))
    widths = [max(len(row[column]) for row, _ in rows if len(row) > column) for column in range(len(COLUMNS))]
    lines = []
    for row, details in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        lines.append("  ".join(cells).rstrip())
        lines += [f"    {detail}" for detail in details]
    return lines


def _row(host: str, plan: Plan, summary: Mapping[str, str]) -> tuple[str, ...]:
    driver = plan.target.driver
    then = driver.wanted if driver else "none"
    now = summary.get("driver", "?")
    docker = summary.get("docker", "?")
    installs = any(step.id == "docker-engine" for step in plan.steps)
    images = ", ".join(_short(each) for each in plan.target.images) or "-"
    return (
        host,
        summary.get("gpu", "?"),
        now if now == then or now.startswith(f"{then}.") else f"{now} -> {then}",
        f"{docker} -> {', '.join(plan.target.docker.packages[:1])}" if installs and docker == "none" else docker,
        images,
        str(sum(step.reboots for step in plan.steps)),
        str(len(plan.steps)) if plan.steps else "nothing to change",
    )


def _short(reference: str) -> str:
    """`pytorch:2.9…` of a long reference; a digest by its first digits."""
    name = reference.rsplit("/", 1)[-1]
    return name[: name.index("sha256:") + 15] if "sha256:" in name else name


def _details(plan: Plan) -> list[str]:
    lines = []
    if plan.target.driver:
        driver = plan.target.driver
        lines.append(
            f"driver {driver.wanted}, {driver.kind} module, from {driver.source}; GPUs reach containers by {plan.target.docker.injection}"
        )
    lines += [f"{step.id}{' (reboots)' if step.reboots else ''}: {step.what}, because {step.why}" for step in plan.steps]
    lines += [f"{step.id} is skipped: {step.why}" for step in plan.skipped]
    if plan.target.driver and plan.target.verify != "off":
        proved = f"a CUDA kernel on {plan.target.expected_gpus} GPUs in a container of {plan.target.images[0]}"
        lines.append(f"proof ({plan.target.verify}): {proved}")
    lines += [f"note: {each}" for each in plan.notes]
    if plan.provisional:
        lines.append(f"provisional: {plan.provisional}")
    return lines


def as_json(found: Mapping[str, Found]) -> dict[str, Any]:
    """By host: {"plan": …}, {"refusal": …} or {"error": …}."""
    result: dict[str, Any] = {}
    for host, each in sorted(found.items()):
        if isinstance(each, Plan):
            result[host] = {"plan": _plain(asdict(each))}
        elif isinstance(each, Refusal):
            result[host] = {"refusal": asdict(each)}
        else:
            result[host] = {"error": each}
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def exit_code(found: Iterable[Found]) -> int:
    """0 all planned, 3 any host refused, else 1 if any has no survey (design §8)."""
    kinds = {type(each) for each in found}
    return 3 if Refusal in kinds else 1 if str in kinds else 0
