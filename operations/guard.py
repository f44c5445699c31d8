"""An operation of ours: its errors fail its own host and no other, and its first change takes the host's lock."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec

from pyinfra import logger, state
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.arguments_typed import PyinfraOperation
from pyinfra.api.command import PyinfraCommand

from bringup.errors import HostError
from operations import lock
from operations.record import report_problem

P = ParamSpec("P")
Commands = Iterator[PyinfraCommand]


class Failing(FunctionCommand):
    """A command that fails its host with one clean line. (pyinfra would end the run for all hosts on an exception.)"""

    def __init__(self, message: str) -> None:
        def fail(state: State, host: Host, message: str) -> bool:
            report_problem(host, message)
            return False

        super().__init__(fail, (message,), {})


def host_operation(function: Callable[P, Commands]) -> PyinfraOperation[P]:
    """`@operation()` for a generator that raises HostError. Anything else that it raises is our bug, and says so."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> Commands:
        try:
            for command in function(*args, **kwargs):
                if state.is_executing and not isinstance(command, Failing):
                    yield from lock.held()
                yield command
        except HostError as error:
            yield Failing(str(error))
        except Exception as error:
            logger.debug(traceback.format_exc())
            yield Failing(f"internal error in {function.__name__}: {type(error).__name__}: {error}")

    return operation()(guarded)  # type: ignore[arg-type]
