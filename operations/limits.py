"""Locked memory for login users, systemd units and Docker."""

from __future__ import annotations

from pyinfra.api import StringCommand

from bringup.steps.containers import memlock_files
from bringup.target import Target
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed


@host_operation
def memlock(target: Target) -> Commands:
    """The three places where the limit is set. Docker takes it up with its restart (daemon-json), users at their next login."""
    if needed("memlock", target) is None or target.memlock is None:
        return
    for path, text in memlock_files(target.memlock).items():
        yield write_file(path, "# written by gpu-bringup\n" + text)
    yield StringCommand("systemctl daemon-reexec")
