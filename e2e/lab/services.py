"""Programs that serve the lab's network for as long as it is up.

Each lives in a control group of its own below the lab's: it outlives the process that starts it, `down` finds it whatever happened, and
nothing else is ever ended.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from . import cgroup
from .errors import LabError
from .network import Network
from .paths import STATE

_READY_S = 15


def start(network: Network, name: str, port: int, argv: Sequence[str]) -> None:
    """Starts a program that serves the port of the lab's gateway, and returns when it answers there.

    LabError when something else has the port, when the program ends, and when it does not answer in time.
    """
    _check_free(network.gateway, port, name)
    group = cgroup.make(_group(network, name))
    log = STATE / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        # --fork: nobody's child, so that nobody has to wait for it when it goes
        subprocess.run(
            ["setsid", "--fork", *cgroup.entering(group, argv)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=True, timeout=10,
        )  # fmt: skip
    deadline = time.monotonic() + _READY_S
    while not _answers(network.gateway, port):
        time.sleep(0.02)
        if time.monotonic() > deadline:
            raise LabError(f"the lab's {name} did not answer on {network.gateway}:{port} within {_READY_S} s: {_last_words(log)}")


def stop(network: Network, name: str) -> None:
    """Ends the program at once, if it runs."""
    cgroup.remove(_group(network, name))


def is_running(network: Network, name: str) -> bool:
    return cgroup.is_populated(_group(network, name))


def _group(network: Network, name: str) -> Path:
    return network.cgroup / "services" / name


def _check_free(address: str, port: int, name: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as problem:
            raise LabError(
                f"the lab's {name} cannot have {address}:{port} ({problem.strerror}): `ss -tlnp sport = :{port}` shows who has it"
            ) from None


def _answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
    return f"the last that it said is {last!r}, see {log}"
