"""The lab's network on this machine: a bridge, NAT to the outside, and names and addresses for every host.

A host's own card is made by supervise.sh, inside the host's own network namespace, and goes away with it. Every name begins with `gbl`
and the number of the network, so that labs can live side by side and each finds only what is its own.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cgroup
from .command import run
from .errors import LabError
from .paths import STATE

_COMMENT = "gpu-bringup-lab"
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
# Says that a lab has turned forwarding on: the last lab that goes turns it off again.
_TURNED_ON = Path("/run/gpu-bringup-lab.ip_forward")

MAX_HOSTS = 200


@dataclass(frozen=True)
class Network:
    number: int

    @property
    def bridge(self) -> str:
        return f"gbl{self.number}"

    @property
    def subnet(self) -> str:
        return f"198.18.{self.number}.0/24"

    @property
    def gateway(self) -> str:
        """This machine's address on the lab's network."""
        return f"198.18.{self.number}.1"

    @property
    def cgroup(self) -> Path:
        """The group that all processes of the lab lie in."""
        return cgroup.mounted() / self.bridge

    def address(self, host: int) -> str:
        return f"198.18.{self.number}.{20 + host}"

    def link(self, host: int) -> str:
        """The machine's end of a host's network card: take it down, and the host is cut off."""
        return f"{self.bridge}-{host}"

    def mac(self, host: int) -> str:
        """Stays the same over reboots, as a VM's does; host 0 is the bridge."""
        return f"02:67:62:{self.number:02x}:00:{host:02x}"


def this_network() -> Network:
    """The network that $GPU_BRINGUP_LAB_NET asks for: 198.18.N.0/24 and bridge gblN; 8 when it is unset."""
    wanted = os.environ.get("GPU_BRINGUP_LAB_NET") or "8"
    if not wanted.isdecimal() or int(wanted) > 255:
        raise LabError(f"GPU_BRINGUP_LAB_NET is {wanted!r}: use a number from 0 to 255, which makes the network 198.18.N.0/24")
    return Network(int(wanted))


def check_free(network: Network) -> None:
    """LabError when another lab has this network already."""
    for link in _links(network):
        owner = str(link.get("ifalias", "")).removeprefix(_COMMENT).strip() or "something else"
        raise LabError(
            f"{network.subnet} is taken: {link['ifname']} belongs to {owner}; GPU_BRINGUP_LAB_NET=N takes another network, "
            "or `python -m e2e down` there ends that lab"
        )


def is_ours(network: Network) -> bool:
    """Does this network's bridge belong to the lab in STATE?"""
    return any(link.get("ifalias") == f"{_COMMENT} {STATE}" for link in _links(network))


def up(network: Network) -> None:
    """Makes the bridge, lets it out, and lets it through the machine's own firewall where there is one."""
    bridge = network.bridge
    # a fixed address: a bridge otherwise takes the lowest of its ports', and hosts would lose their gateway when a port goes
    run(["ip", "link", "add", bridge, "address", network.mac(0), "type", "bridge"])
    run(["ip", "link", "set", bridge, "alias", f"{_COMMENT} {STATE}"])
    run(["ip", "address", "add", f"{network.gateway}/24", "dev", bridge])
    run(["ip", "link", "set", bridge, "up"])
    run(["nft", "-f", "-"], stdin=f"""table ip {bridge} {{
        chain nat {{
            type nat hook postrouting priority 100
            ip saddr {network.subnet} oifname != "{bridge}" masquerade comment "{_COMMENT}"
        }}
    }}""")  # fmt: skip
    for chain, direction in (("INPUT", "-i"), ("FORWARD", "-i"), ("FORWARD", "-o")):
        if run(["iptables", "-S", chain]).strip() != f"-P {chain} ACCEPT":
            run(["iptables", "-I", chain, direction, bridge, "-m", "comment", "--comment", _COMMENT, "-j", "ACCEPT"])
    if _FORWARDING.read_text().strip() == "0":
        _TURNED_ON.touch()
        _FORWARDING.write_text("1")


def down(network: Network) -> None:
    """Removes what up() made, as far as it is there."""
    for line in run(["iptables", "-S"]).splitlines():
        rule = shlex.split(line)
        if rule[0] == "-A" and _COMMENT in rule and network.bridge in rule:
            run(["iptables", "-D", *rule[1:]])
    if f"table ip {network.bridge}" in run(["nft", "list", "tables"]).splitlines():
        run(["nft", "delete", "table", "ip", network.bridge])
    for link in _links(network):
        # a host's card may go by itself at this moment, with its network namespace
        run(["ip", "link", "delete", str(link["ifname"])], check=False)
    if _TURNED_ON.exists() and not any(str(link["ifname"]).startswith("gbl") for link in _all_links()):
        _FORWARDING.write_text("0")
        _TURNED_ON.unlink()


def _links(network: Network) -> list[dict[str, Any]]:
    return [x for x in _all_links() if x["ifname"] == network.bridge or str(x["ifname"]).startswith(f"{network.bridge}-")]


def _all_links() -> list[dict[str, Any]]:
    links: list[dict[str, Any]] = json.loads(run(["ip", "-json", "link", "show"]) or "[]")
    return links
