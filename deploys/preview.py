"""The plans of an inventory as a table."""

from __future__ import annotations

from pyinfra import state

from bringup.errors import HostError
from bringup.report.plans import Found, exit_code, plan_lines
from bringup.report.unreachable import unreachable
from deploys.frame import plan_this_host
from facts import live
from operations.record import RUN

_found: dict[str, Found] = {}


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
            _found.setdefault(each.name, unreachable(RUN.unreached.get(each.name)))
    summaries = {name: RUN.of(name).summary for name in _found}
    print("\n".join(plan_lines(_found, summaries, verbose=bool(state.print_noop_info))))  # print_noop_info: -v
    raise SystemExit(exit_code(_found.values()))
