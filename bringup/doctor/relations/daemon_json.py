"""Relations of Docker's daemon.json: what it says against the unit's flags, and whether it can be read at all."""

from __future__ import annotations

import json
import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.registry import relation

# flags of dockerd by the key of daemon.json that says the same; only runtimes may be given in both places
FLAGS = {
    "H": "hosts", "host": "hosts", "default-ulimit": "default-ulimits", "dns-opt": "dns-opts", "exec-opt": "exec-opts", "label": "labels",
    "insecure-registry": "insecure-registries", "registry-mirror": "registry-mirrors", "storage-opt": "storage-opts", "log-opt": "log-opts",
    "authorization-plugin": "authorization-plugins", "D": "debug", "l": "log-level", "s": "storage-driver", "b": "bridge", "G": "group",
    "g": "data-root", "graph": "data-root", "p": "pidfile", "feature": "features",
}  # fmt: skip
MERGED = {"runtimes", "add-runtime"}
# keys that dockerd knows; from its documentation of daemon.json
KEYS = frozenset([
    "allow-direct-routing", "allow-nondistributable-artifacts", "api-cors-header", "authorization-plugins", "bip", "bip6", "bridge",
    "bridge-accept-fwmark", "builder", "cgroup-parent", "containerd", "containerd-namespace", "containerd-plugins-namespace",
    "cluster-advertise", "cluster-store", "cluster-store-opts", "cpu-rt-period", "cpu-rt-runtime", "data-root", "debug",
    "default-address-pools", "default-cgroupns-mode", "default-gateway", "default-gateway-v6", "default-ipc-mode",
    "default-network-opts", "default-runtime", "default-shm-size", "default-ulimits", "deprecated-key-path", "dns", "dns-opts",
    "dns-search", "exec-opts", "exec-root", "experimental", "features", "fixed-cidr", "fixed-cidr-v6", "firewall-backend", "graph",
    "group", "host-gateway-ip", "host-gateway-ips", "hosts", "http-proxy", "https-proxy", "icc", "init", "init-path",
    "insecure-registries", "ip", "ip-forward", "ip-forward-no-drop", "ip-masq", "ip6tables", "iptables", "ipv6", "labels",
    "live-restore", "log-driver", "log-format", "log-level", "log-opts", "max-concurrent-downloads", "max-concurrent-uploads",
    "max-download-attempts", "metrics-addr", "mtu", "network-diagnostic-port", "no-new-privileges", "no-proxy",
    "node-generic-resources", "oom-score-adjust", "pidfile", "proxies", "raw-logs", "registry-mirrors", "rootless", "runtimes",
    "seccomp-profile", "selinux-enabled", "shutdown-timeout", "storage-driver", "storage-opts", "swarm-default-advertise-addr", "tls",
    "tlscacert", "tlscert", "tlskey", "tlsverify", "userland-proxy", "userland-proxy-path", "userns-remap", "validate", "nri-opts",
])  # fmt: skip


def flag_keys(flags: str) -> dict[str, str]:
    """{key of daemon.json: the flag as written} of a command line of dockerd."""
    found: dict[str, str] = {}
    for flag in re.findall(r"(?<!\S)(--?[A-Za-z][\w-]*)", flags):
        name = flag.lstrip("-")
        found[FLAGS.get(name, name)] = flag
    return found


@relation
def key_in_file_and_flag(facts: Facts) -> list[str]:
    flags = flag_keys(facts.unit_flags)
    both = [key for key in facts.daemon or {} if key in flags and key not in MERGED and key != "hosts"]
    return [f"{key}: in daemon.json, and as {flags[key]} in docker.service" for key in both]


@relation
def hosts_in_file_and_flag(facts: Facts) -> list[str]:
    flags = flag_keys(facts.unit_flags)
    return (
        [f"hosts: in daemon.json, and as {flags['hosts']} in docker.service"]
        if "hosts" in (facts.daemon or {}) and "hosts" in flags
        else []
    )


def _error(facts: Facts) -> tuple[str, str] | None:
    """(what the parser says, the line at fault) of a daemon.json that is no JSON."""
    text = (facts.daemon_text or "").lstrip("\ufeff")
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        lines = text.split("\n")
        return f"line {error.lineno}: {error.msg}", lines[min(error.lineno, len(lines)) - 1].strip()
    except (ValueError, RecursionError):
        return "nested too deep", ""
    return None if isinstance(value, dict) else ("it is no object", text.strip()[:80])


def _has_comment(text: str) -> bool:
    return bool(re.search(r"^\s*(?://|/\*|#)|[\]},\"]\s*//\s|,\s*[}\]]", text, re.M))


@relation
def daemon_json_is_no_json(facts: Facts) -> list[str]:
    error = _error(facts)
    return [f"daemon.json, {error[0]}: {error[1]}"] if error and not _has_comment(facts.daemon_text or "") else []


@relation
def daemon_json_with_comments(facts: Facts) -> list[str]:
    error = _error(facts)
    return [f"daemon.json, {error[0]}: {error[1]}"] if error and _has_comment(facts.daemon_text or "") else []


@relation
def daemon_json_with_bom(facts: Facts) -> list[str]:
    return ["daemon.json begins with a byte order mark"] if (facts.daemon_text or "").startswith("\ufeff") else []


@relation
def daemon_json_is_empty(facts: Facts) -> list[str]:
    text = facts.daemon_text
    if text is not None and not text.strip("\ufeff \t\r\n"):
        return ["daemon.json is empty"]
    size = facts.command(r"^(?:stat|wc|ls -l).*daemon\.json") or ""
    found = re.search(r"^\s*0\b.*$|^-\S+ \d+ \S+ \S+ 0 .*$", size, re.M)
    return [f"daemon.json has 0 bytes: {found[0].strip()}"] if found else []


@relation
def daemon_json_key_unknown(facts: Facts) -> list[str]:
    unknown = [key for key in facts.daemon or {} if key not in KEYS]
    return [f"daemon.json has {', '.join(unknown)}: dockerd knows no such option"] if unknown else []
