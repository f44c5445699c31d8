"""pyinfra exits 0 on a mistyped inventory path, and on a --limit that matches nothing: nothing was done, and it looks like success."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

import click
from pyinfra import logger, state
from pyinfra.context import ctx_state


def refuse_an_empty_selection() -> None:
    """An inventory file that is not there ends the run now; a selection without hosts, at its end. Both with exit 2."""
    context = click.get_current_context(silent=True)
    given = str(context.params.get("inventory", "")) if context else ""
    if given.endswith(".py") and not Path(given).exists():
        logger.error(f"--> there is no inventory file {given}: nothing was done")
        raise SystemExit(2)
    atexit.register(_check, given)


def _check(given: str) -> None:
    if not ctx_state.isset() or not state.initialised or any(state.is_host_in_limit(each) for each in state.inventory):
        return
    logger.error(f"--> no host was selected, nothing was done: is {given} the right inventory, and what does --limit name?")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(2)
