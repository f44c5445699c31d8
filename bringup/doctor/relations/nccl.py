"""Relations of NCCL: its interface, and PCIe access control."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.lines import matched
from bringup.doctor.relations.registry import relation


@relation
def nccl_interface_unknown(facts: Facts) -> list[str]:
    wanted = facts.find(r"NCCL_SOCKET_IFNAME\s*=\s*([\w,^=.-]+)")
    text = facts.command(r"^ip\b|^ifconfig|^ls /sys/class/net")
    if not wanted or text is None or wanted.startswith("^"):
        return []
    names = [each for each in wanted.lstrip("=").split(",") if each]
    if any(re.search(rf"(?:^|\s){re.escape(name)}", text, re.M) for name in names):
        return []
    return [f"NCCL_SOCKET_IFNAME={wanted}, and the host has no such interface"]


@relation
def acs_redirects(facts: Facts) -> list[str]:
    if facts.virtual:
        return []
    return matched(r"^.*ACSCtl:.*(?:SrcValid\+|ReqRedir\+).*$", facts.everything)
