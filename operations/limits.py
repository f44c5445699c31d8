"""Locked memory for login users, systemd's units and Docker's daemons."""

from __future__ import annotations

import shlex

from pyinfra.api import FunctionCommand, Host, State, StringCommand
from pyinfra.connectors.ssh import SSHConnector
from pyinfra.connectors.util import clear_askpass_cache

from bringup.limits import UNITS, memlock_files
from bringup.target import Target
from facts.connection import keep_alive
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed
from operations.record import report_problem

# MEMLOCK UNIT...: the daemons that run get the limit without a restart, which no container notices
RAISE = """
memlock=$1; shift
for unit; do
    pid=$(systemctl show -p MainPID --value "$unit") || continue
    [ "${pid:-0}" = 0 ] || prlimit --pid "$pid" --memlock="$memlock:$memlock"
done
"""


@host_operation
def memlock(target: Target) -> Commands:
    """systemd takes its part up with daemon-reexec, users with their next login: this connection is made anew."""
    if needed("memlock", target) is None or target.memlock is None:
        return
    for path, text in memlock_files(target.memlock).items():
        yield write_file(path, "# written by gpu-bringup\n" + text)
    yield StringCommand("systemctl daemon-reexec && sh -c", shlex.quote(RAISE), "sh", str(target.memlock), *UNITS)
    yield FunctionCommand(log_in_anew, (), {})


def log_in_anew(state: State, host: Host) -> bool:
    """Limits are given to a login when its connection is made."""
    if isinstance(host.connector, SSHConnector):
        clear_askpass_cache(host)
        host.disconnect()
        host.connect(reason="to log in with the new limits")
        if not host.connected:
            report_problem(host, "the host did not answer when it was to be logged in to anew")
            return False
        keep_alive(host)
    return True
