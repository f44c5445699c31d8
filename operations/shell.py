"""Running a command on a host outside of pyinfra's list of commands: from functions, and at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paramiko import SSHException
from pyinfra.api import Host, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS, pop_global_arguments
from pyinfra.api.command import QuoteString

TIMEOUT_S = 60


def run(host: Host, script: str, *arguments: str, timeout_s: int = TIMEOUT_S, stdin: Sequence[str] = ()) -> tuple[bool, str]:
    """(success, what it printed) of `sh -c SCRIPT sh ARGUMENTS…` with the host's own sudo; never raises for a lost host.

    + stdin: lines; what is secret goes here, and not into arguments, which everybody on the host can see
    """
    known: dict[str, Any] = dict(pop_global_arguments(host.state, host, {})[0])
    connector: Any = {key: known[key] for key in CONNECTOR_ARGUMENT_KEYS if key in known}
    connector["_timeout"] = timeout_s
    if stdin:
        connector["_stdin"] = stdin if isinstance(stdin, list) else list(stdin)
    command = StringCommand("sh", "-c", QuoteString(script), "sh", *(QuoteString(each) for each in arguments))
    try:
        success, output = command.execute(host.state, host, connector)
    except (TimeoutError, OSError, SSHException, EOFError) as error:
        return False, f"{type(error).__name__}: {error}"
    return success, str(output.output)
