"""The beginning of a run, from config.py, before any host is connected: what pyinfra would pass over in silence.

It exits 0 on a mistyped inventory path and on a --limit that matches nothing, and where no host can be reached no deploy file is
ever read, so that nothing else could write the reports.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from pathlib import Path

import click
from pyinfra import logger, state
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_state
from typing_extensions import override

from deploys import ending
from operations.record import RUN


def begin() -> None:
    """An inventory file that is not there ends the run now; a selection without hosts, at its end. Both with exit 2."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    inventory = str(given.get("inventory", ""))
    if inventory.endswith(".py") and not Path(inventory).exists():
        raise ending.wrong_use(f"there is no inventory file {inventory}: nothing was done")
    atexit.register(_check_selection, inventory)
    logger.addHandler(_Unreached(logging.ERROR))
    logging.getLogger("paramiko").addHandler(logging.NullHandler())  # else it prints a traceback for every host that says no SSH
    if any(_is_ours(str(each)) for each in given.get("operations", ())):
        ending.register(ctx_state.get())


class _Unreached(logging.Handler):
    """Keeps why a host could not be reached. pyinfra takes callbacks only once it is about to connect, and says the reason nowhere else."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if ctx_state.isset() and state.current_stage == StateStage.Connect:
            found = re.fullmatch(r"\[(.+?)\] +(.+)", re.sub(r"\x1b\[[0-9;]*m", "", record.getMessage()), re.DOTALL)
            if found:
                RUN.unreached[found[1]] = found[2]


def _is_ours(deploy: str) -> bool:
    """A stage file of this project; plan.py and doctor.py only look."""
    path = Path(deploy).resolve()
    return path.parent == Path(__file__).resolve().parent and path.name not in ("plan.py", "doctor.py")


def _check_selection(inventory: str) -> None:
    if not ctx_state.isset() or not state.initialised or any(state.is_host_in_limit(each) for each in state.inventory):
        return
    logger.error(f"--> no host was selected, nothing was done: is {inventory} the right inventory, and what does --limit name?")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(2)
