"""The beginning of a run, from config.py, before any host is connected: what pyinfra would pass over in silence.

It exits 0 on a mistyped inventory path and on a --limit that matches nothing, and where no host can be reached no deploy file is
ever read, so that nothing else could write the reports.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

import click
from pyinfra import logger, state
from pyinfra.context import ctx_state

from deploys import ending


def begin() -> None:
    """An inventory file that is not there ends the run now; a selection without hosts, at its end. Both with exit 2."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    inventory = str(given.get("inventory", ""))
    if inventory.endswith(".py") and not Path(inventory).exists():
        raise ending.wrong_use(f"there is no inventory file {inventory}: nothing was done")
    atexit.register(_check_selection, inventory)
    if any(_is_ours(str(each)) for each in given.get("operations", ())):
        ending.register(ctx_state.get())


def _is_ours(deploy: str) -> bool:
    """A stage file of this project; plan.py only looks."""
    path = Path(deploy).resolve()
    return path.parent == Path(__file__).resolve().parent and path.name != "plan.py"


def _check_selection(inventory: str) -> None:
    if not ctx_state.isset() or not state.initialised or any(state.is_host_in_limit(each) for each in state.inventory):
        return
    logger.error(f"--> no host was selected, nothing was done: is {inventory} the right inventory, and what does --limit name?")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(2)
