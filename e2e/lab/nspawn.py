"""Switching the machine of one lab host on and off: systemd-nspawn under supervise.sh, all in one control group."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import cgroup
from .errors import LabError

SCRIPT = Path(__file__).with_name("supervise.sh")


def start(script: Path, group: Path, console: Path, settings: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Switches the machine on and returns when it runs, long before it answers; it outlives this process.

    settings are the LAB_* variables that supervise.sh names, arguments go to systemd-nspawn, and what the machine prints goes to the end
    of console.
    """
    cgroup.make(group / "loop")
    cgroup.make(group / "machine")
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LAB_CGROUP": str(group), **settings}
    with console.open("ab") as output:
        # --fork: the machine is nobody's child, so that nobody has to wait for it when it goes
        subprocess.run(
            ["setsid", "--fork", str(script), "enter", *arguments],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, check=True, timeout=10,
        )  # fmt: skip
    deadline = time.monotonic() + 10
    while not cgroup.is_populated(group):
        if time.monotonic() > deadline:
            raise LabError(f"{script} did not start within 10 s: see {console}")
        time.sleep(0.002)


def is_running(group: Path) -> bool:
    """Is the machine switched on? False also after it has switched itself off."""
    return cgroup.is_populated(group)


def cut_power(group: Path) -> None:
    """Ends the machine at once, with nothing written or said first; its disk stays as it is at that moment."""
    cgroup.remove(group)
