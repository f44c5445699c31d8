"""What this run knows about each host. One per process, since pyinfra runs one inventory per process."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

from pyinfra import logger
from pyinfra.api import Host

from bringup.report import HostResult


class Run:
    """The results of this run by host name, and what names the run."""

    def __init__(self) -> None:
        self.started = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        self.id = f"{self.started}-{secrets.token_hex(2)}"
        self.results: dict[str, HostResult] = {}
        self.unreached: dict[str, str] = {}
        """Why no connection could be made, by host name, in pyinfra's words."""
        self.reports = Path("reports")

    def of(self, host: str) -> HostResult:
        return self.results.setdefault(host, HostResult(host=host, run=self.id))

    def all_ok(self) -> bool:
        return all(each.ok for each in self.results.values())


RUN = Run()


def report_problem(host: Host, message: str) -> None:
    """One red line on the terminal, and in the host's result."""
    RUN.of(host.name).problems.append(message)
    host.log_styled(message, fg="red", log_func=logger.error)
    host.state.failed_hosts.add(host)  # --no-wait forgets to, and would exit 0


def control_machine() -> str:
    """This machine and this process, as a lock's owner names them: `name/machine-id/pid`. No blanks in it."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()[:12]
    except OSError:
        machine = ""
    return f"{os.uname().nodename}/{machine or '-'}/{os.getpid()}"
