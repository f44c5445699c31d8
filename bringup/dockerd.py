"""dockerd's options: the keys of daemon.json with their types, the flags that say the same, and a unit's command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["text", "truth value", "whole number", "size", "list of texts", "list of objects", "object", "object of texts",
               "object of truth values"]  # fmt: skip

# from Docker's documentation of daemon.json and `dockerd --help` of 20.10, 26.1 and 28.5; removed keys are known too
_KEYS: Mapping[Kind, str] = {
    "text": """api-cors-header bip bip6 bridge bridge-accept-fwmark cgroup-parent cluster-advertise cluster-store containerd
        containerd-namespace containerd-plugins-namespace data-root default-cgroupns-mode default-gateway default-gateway-v6
        default-ipc-mode default-runtime deprecated-key-path exec-root firewall-backend fixed-cidr fixed-cidr-v6 graph group
        host-gateway-ip http-proxy https-proxy init-path ip log-driver log-format log-level metrics-addr no-proxy pidfile
        seccomp-profile storage-driver swarm-default-advertise-addr tlscacert tlscert tlskey userland-proxy-path userns-remap""",
    "truth value": """allow-direct-routing debug experimental icc init ip-forward ip-forward-no-drop ip-masq ip6tables iptables ipv6
        live-restore no-new-privileges raw-logs rootless selinux-enabled tls tlsverify userland-proxy validate""",
    "whole number": """cpu-rt-period cpu-rt-runtime max-concurrent-downloads max-concurrent-uploads max-download-attempts mtu
        network-control-plane-mtu network-diagnostic-port oom-score-adjust shutdown-timeout""",
    "size": "default-shm-size",
    "list of texts": """allow-nondistributable-artifacts authorization-plugins cdi-spec-dirs dns dns-opts dns-search exec-opts
        host-gateway-ips hosts insecure-registries labels node-generic-resources registry-mirrors storage-opts""",
    "list of objects": "default-address-pools",
    "object": "builder default-network-opts default-ulimits nri-opts runtimes",
    "object of texts": "cluster-store-opts log-opts proxies",
    "object of truth values": "features",
}  # fmt: skip
KEYS: Mapping[str, Kind] = {key: kind for kind, keys in _KEYS.items() for key in keys.split()}

# by the key that says the same; long flags are otherwise called as the key
FLAGS: Mapping[str, str] = {
    "H": "hosts", "host": "hosts", "default-ulimit": "default-ulimits", "dns-opt": "dns-opts", "exec-opt": "exec-opts", "label": "labels",
    "insecure-registry": "insecure-registries", "registry-mirror": "registry-mirrors", "storage-opt": "storage-opts", "log-opt": "log-opts",
    "authorization-plugin": "authorization-plugins", "D": "debug", "l": "log-level", "s": "storage-driver", "b": "bridge", "G": "group",
    "g": "data-root", "p": "pidfile", "feature": "features", "cdi-spec-dir": "cdi-spec-dirs", "add-runtime": "runtimes",
    "default-address-pool": "default-address-pools", "default-network-opt": "default-network-opts",
    "node-generic-resource": "node-generic-resources",
}  # fmt: skip
BOTH_PLACES = frozenset(["runtimes"])  # may be given by flag and in the file: dockerd puts them together

# what a daemon takes up by a reload alone: documented for each; the shm size seen on 20.10 and 28.5
RELOADED = frozenset([
    "debug", "default-runtime", "default-shm-size", "insecure-registries", "labels", "live-restore", "max-concurrent-downloads",
    "max-concurrent-uploads", "max-download-attempts", "registry-mirrors", "runtimes", "shutdown-timeout",
])  # fmt: skip


def is_of_kind(value: object, kind: Kind) -> bool:
    """Does dockerd take this value for a key of that kind? null is as good as no key."""
    if value is None:
        return True
    if kind.startswith("list"):
        inner: type = str if kind == "list of texts" else dict
        return isinstance(value, list | tuple) and all(isinstance(each, inner) for each in value)
    if kind.startswith("object"):
        of = {"object of texts": str, "object of truth values": bool}.get(kind, object)
        return isinstance(value, Mapping) and all(isinstance(each, of) for each in value.values())
    if kind == "size":
        return isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)? ?([bB]|[kKmMgGtTpP](i?[bB])?)?", value) is not None
    return {"text": isinstance(value, str), "truth value": isinstance(value, bool), "whole number": is_whole(value)}[kind]


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def command_line(exec_start: str, environment: Mapping[str, str]) -> str:
    """ExecStart= with the variables in it, as systemd fills them in: `$NAME` alone becomes words, `${NAME}` stays within its word.

    + exec_start: as the unit's file has it, or as `systemctl show` prints it
    """
    found = re.search(r"argv\[\]=(.*?) ; ignore_errors=", exec_start)
    line = found[1] if found else exec_start.lstrip("@-:+! ")
    words = (re.sub(r"\$\{(\w+)\}", lambda name: environment.get(name[1], ""), word) for word in line.split(" "))
    return " ".join(environment.get(word[1:], "") if re.fullmatch(r"\$\w+", word) else word for word in words).strip()


def environment(text: str) -> dict[str, str]:
    """The variables of an EnvironmentFile= such as /etc/default/docker: NAME=value, with or without quotes and `export`."""
    found = {}
    for name, value in re.findall(r"^[ \t]*(?:export[ \t]+)?(\w+)=(.*?)[ \t]*$", text.replace("\\\n", " "), re.M):
        found[name] = value[1:-1] if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0] else value
    return found


def unit_environment(text: str) -> dict[str, str]:
    """The variables that Environment= lines of a unit and its drop-ins set."""
    found: dict[str, str] = {}
    for line in re.findall(r"^\s*Environment=(.*)$", text, re.M):
        found |= environment("\n".join(words(line)))
    return found


def flag_keys(flags: str) -> dict[str, str]:
    """{key of daemon.json: the flag as written} of a command line of dockerd."""
    return {key: flag for key, flag, _ in _given(flags)}


def flag_values(flags: str) -> dict[str, Any]:
    """{key of daemon.json: what the flags give for it, in the file's form}; None where a flag has another form than the file."""
    found: dict[str, Any] = {}
    for key, _, value in _given(flags):
        kind = KEYS.get(key)
        if kind == "truth value":
            found[key] = value.lower() not in ("false", "0", "f")
        elif kind == "whole number":
            found[key] = int(value) if re.fullmatch(r"-?\d+", value) else None
        elif kind == "list of texts":
            found[key] = [*found.get(key, ()), value]
        elif kind in ("object of texts", "object of truth values"):
            name, _, given = value.partition("=")
            found[key] = {**found.get(key, {}), name: given if kind == "object of texts" else given.lower() not in ("false", "0")}
        elif key == "runtimes":
            name, _, path = value.partition("=")
            found[key] = {**found.get(key, {}), name: {"path": path}}
        else:
            found[key] = value if kind in ("text", "size") or kind is None else None
    return found


def words(line: str) -> list[str]:
    """Of a command line, as a shell splits it."""
    try:
        return shlex.split(line)
    except ValueError:  # a quote that does not end
        return line.split()


def _given(flags: str) -> list[tuple[str, str, str]]:
    """(key, the flag as written, its value) of each flag. Flags of truth values take none but after `=`."""
    given = words(flags)
    found = []
    at = 0
    while at < len(given):
        word, at = given[at], at + 1
        match = re.fullmatch(r"(--[A-Za-z][\w-]*)(?:=(.*))?|(-[A-Za-z])=?(.*)", word, re.S)
        if match is None:
            continue
        flag, value = (match[1], match[2]) if match[1] else (match[3], match[4] or None)
        key = FLAGS.get(flag.lstrip("-"), flag.lstrip("-"))
        if value is None and KEYS.get(key) == "truth value":
            value = "true"
        elif value is None and at < len(given) and not given[at].startswith("-"):
            value, at = given[at], at + 1
        found.append((key, flag, value or ""))
    return found
