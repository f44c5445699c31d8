"""The plans of an inventory as a table."""

from __future__ import annotations

from collections.abc import Iterable

from pyinfra import state

from bringup.errors import HostError
from bringup.plan import Plan, Refusal
from deploys.frame import plan_this_host
from facts import live
from operations.record import RUN

_found: dict[str, Plan | Refusal | str] = {}


def preview() -> None:
    """Plan the current host. The last one prints the table and ends the run: nothing can be executed, with -y or without."""
    this = live.current_host()
    try:
        _found[this.name] = plan_this_host()
    except HostError as error:
        _found[this.name] = str(error)
    except Exception as error:
        _found[this.name] = f"internal error: {type(error).__name__}: {error}"
    if any(each.name not in _found for each in state.activated_hosts):
        return
    for each in state.inventory:
        if state.is_host_in_limit(each):
            _found.setdefault(each.name, "the host could not be reached")
    for name, found in sorted(_found.items()):
        print("\n".join(describe(name, found)))
    raise SystemExit(exit_code(_found.values()))


def describe(name: str, found: Plan | Refusal | str) -> list[str]:
    """A host's plan: a line for the host, one a step."""
    summary = RUN.of(name).summary
    host = f": {summary['gpu']}; {summary['system']}; driver {summary['driver']}; docker {summary['docker']}" if summary else ""
    lines = [f"{name}{host}"]
    if isinstance(found, Refusal):
        return [*lines, f"    refused ({found.id}): {found}"]
    if isinstance(found, str):
        return [*lines, f"    no survey: {found}"]
    target = found.target
    if target.driver:
        lines.append(
            f"    driver -> {target.driver.wanted} ({target.driver.kind}, {target.driver.source}); injection {target.docker.injection}"
        )
    lines += [f"    image -> {each}" for each in target.images]
    for step in found.steps:
        lines.append(f"    {step.id:<20} {step.what}{' (reboots)' if step.reboots else ''}, because {step.why}")
    lines += [f"    {step.id:<20} skipped: {step.why}" for step in found.skipped]
    if found.provisional:
        lines.append(f"    provisional: {found.provisional}")
    return lines if found.steps else [*lines, "    nothing to change"]


def exit_code(found: Iterable[Plan | Refusal | str]) -> int:
    kinds = {type(each) for each in found}
    return 3 if Refusal in kinds else 1 if str in kinds else 0
