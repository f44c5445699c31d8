"""What a lab could leave behind on this machine: to be equal before a lab and after it, however that ended."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from . import cgroup
from .command import run
from .network import Network, this_network
from .paths import CACHE, STATE

# They change by themselves, or cannot be read.
_RESTLESS = re.compile(
    r"fs/(file-nr|inode-nr|inode-state|dentry-state|aio-nr|quota/|binfmt_misc/)|kernel/(ns_last_pid|random/|pty/nr|tainted|perf_event_max)"
)


def machine_snapshot(net: Network | None = None) -> dict[str, list[str]]:
    """Mounts, links, named network namespaces, firewall rules, control groups, sysctls, and the processes and files of the lab.

    What belongs to another lab than net's (by default the one that $GPU_BRINGUP_LAB_NET asks for) is left out: it comes and goes.
    """
    net = net or this_network()
    everything = {
        "mounts": _mounts(),
        "links": _links(),
        "netns": run(["ip", "netns", "list"]).splitlines(),
        "rules": _rules(),
        "cgroups": _cgroups(),
        "processes": _processes(net),
        "sysctls": _sysctls(),
        "files": [str(path) for path in (STATE, *Path("/run").glob("gpu-bringup-lab*")) if path.exists()],
    }
    other_lab = re.compile(rf"\bgbl(?!{net.number}\b)\d+\b")
    return {kind: sorted(line for line in lines if not other_lab.search(line)) for kind, lines in everything.items()}


def differences(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """What has come and what has gone, one line each."""
    lines = []
    for kind in before:
        lines += [f"{kind}: new: {line}" for line in after[kind] if line not in before[kind]]
        lines += [f"{kind}: gone: {line}" for line in before[kind] if line not in after[kind]]
    return lines


def _mounts() -> list[str]:
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [f"{fields[4]} {' '.join(fields[fields.index('-') + 1 :])}" for fields in lines]


def _links() -> list[str]:
    links = json.loads(run(["ip", "-json", "address", "show"]))
    return [f"{link['ifname']} {[address['local'] for address in link['addr_info']]}" for link in links]


def _rules() -> list[str]:
    """Rules without their counters, each with its table and chain."""
    rules = []
    place = ""
    for line in run(["nft", "list", "ruleset"]).splitlines():
        words = line.strip()
        if words.startswith("table"):
            place = words.rstrip(" {")
        rules.append(f"{place}: {re.sub(r' counter packets [0-9]+ bytes [0-9]+', '', words)}")
    return rules


def _cgroups() -> list[str]:
    return [folder for folder, _, _ in os.walk(cgroup.mounted())]


def _processes(net: Network) -> list[str]:
    """Those in the lab's control group or with a trace of the lab on their command line; not this one and those it comes from."""
    traces = (str(STATE), str(CACHE / "rootfs"), str(Path(__file__).parent), f"{net.bridge}-", net.gateway)
    mine = _ancestors(os.getpid())
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            groups = (folder / "cgroup").read_text()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:  # it has ended meanwhile
            continue
        in_lab = re.search(rf"/{net.bridge}(/|$)", groups, re.MULTILINE)
        is_dead = not command  # a zombie that its parent has not noticed yet; or a part of the kernel
        if not is_dead and int(folder.name) not in mine and (in_lab or any(trace in command for trace in traces)):
            found.append(f"{folder.name} {command}")
    return found


def _ancestors(pid: int) -> set[int]:
    found = set()
    while pid > 0:
        found.add(pid)
        # "pid (name, which may hold anything) state parent ..."
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def _sysctls() -> list[str]:
    root = Path("/proc/sys")
    values = [f"net/ipv4/ip_forward = {(root / 'net/ipv4/ip_forward').read_text().strip()}"]
    for area in ("vm", "kernel", "fs"):
        for path in (root / area).rglob("*"):
            name = str(path.relative_to(root))
            if path.is_file() and not _RESTLESS.match(name):
                try:
                    values.append(f"{name} = {path.read_text().strip()}")
                except OSError:  # write-only
                    continue
    return values
