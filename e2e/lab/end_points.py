"""Many hosts in the place of one: SSH end points of a lab host, each a port of its own, some with a fault.

A hundred machines do not fit on one. What a run asks of a converged host changes nothing there, so that the hundred may be the same one;
with something to change they would keep each other out by the host's lock.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from .host import Host
from .identity import KNOWN_HOSTS

Fault = Literal["down", "hangs", "breaks"]

FIRST_PORT = 10_001
PORTS = 16  # one sshd listens on no more
FOLDER = "/run/end-points"
# by port: a login that is let in, and then gets no answer; one that is answered once, and whose connection then ends
FORCED: Mapping[Fault, str] = {"hangs": "sleep 3600", "breaks": f"{FOLDER}/once"}
ONCE = """#!/bin/sh
# its parent is sshd's process of this connection
[ ! -e "/tmp/end-point-$PPID" ] || { rm "/tmp/end-point-$PPID"; kill -9 "$PPID"; exit 1; }
: >"/tmp/end-point-$PPID"
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""
CONFIG = """\
HostKey /etc/ssh/ssh_host_ed25519_key
AddressFamily inet
PidFile none
PasswordAuthentication no
UsePAM yes
MaxStartups 200
"""
START = f"""
mkdir -p {FOLDER}; systemctl stop 'end-points-*' 2>/dev/null
printf '%s' {shlex.quote(ONCE)} >{FOLDER}/once; chmod 755 {FOLDER}/once; rm -f {FOLDER}/*.conf
"""


def serve(host: Host, count: int, faults: Mapping[int, Fault] | None = None) -> None:
    """Have the host answer as `count` ones; those of before end. faults: by number, from 1. Raises LabError when it cannot."""
    faults = faults or {}
    script = START
    for first in range(1, count + 1, PORTS):
        numbers = [each for each in range(first, min(first + PORTS, count + 1)) if faults.get(each) != "down"]
        if not numbers:
            continue
        lines = [f"Port {port(each)}" for each in numbers]
        for each in (each for each in numbers if each in faults):
            lines += [f"Match LocalPort {port(each)}", f"    ForceCommand {FORCED[faults[each]]}"]
        text = CONFIG + "\n".join(lines) + "\n"
        script += f"printf '%s' {shlex.quote(text)} >{FOLDER}/{first}.conf\n"
        unit = f"systemd-run --quiet --collect --property=Type=notify --unit=end-points-{first}"
        script += f"{unit} /usr/sbin/sshd -D -f {FOLDER}/{first}.conf || exit 1\n"
    host.run(script, sudo=True)


def port(number: int) -> int:
    return FIRST_PORT + number - 1


def name(number: int) -> str:
    return f"node-{number:03}"


def write_inventory(path: Path, lab_inventory: Path, host: Host, numbers: Sequence[int]) -> Path:
    """An inventory of these end points, with the lab's data for the host, and their known_hosts beside it."""
    key = next(line.split(" ", 1)[1] for line in KNOWN_HOSTS.read_text().splitlines() if line.startswith(f"{host.address},"))
    known = path.with_suffix(".known_hosts")
    path.parent.mkdir(parents=True, exist_ok=True)
    known.write_text("".join(f"[{host.address}]:{port(each)} {key}\n" for each in numbers))
    path.write_text(
        f"import runpy\n\n_hosts, _all = runpy.run_path({str(lab_inventory)!r})['lab']\n_own = dict(_hosts)[{host.name!r}]\n"
        f"nodes = ([(name, {{**_own, 'ssh_port': port}}) for name, port in {[(name(each), port(each)) for each in numbers]!r}],\n"
        f"         {{**_all, 'ssh_known_hosts_file': {str(known)!r}}})\n"
    )
    return path
