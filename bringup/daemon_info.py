"""What `docker info` shows of daemon.json: whether the daemon that runs has taken it up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import Any


def evidence(wanted: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(what it is, the text that the compact JSON of `docker info` then has), for each of the wanted keys that it shows."""
    for name in wanted.get("runtimes") or ():
        yield f"runtime {name}", f"{_go(name)}:{{"
    if wanted.get("default-runtime"):
        yield f"default runtime {wanted['default-runtime']}", f'"DefaultRuntime":{_go(wanted["default-runtime"])}'
    for registry in wanted.get("insecure-registries") or ():
        yield f"insecure registry {registry}", _go(_registry(registry))
    for mirror in wanted.get("registry-mirrors") or ():
        yield "registry mirror " + mirror, _go(mirror.rstrip("/") + "/")
    for label in wanted.get("labels") or ():
        yield f"label {label}", _go(label)
    if wanted.get("live-restore") is not None:
        yield "live-restore", f'"LiveRestoreEnabled":{_go(wanted["live-restore"])}'
    if wanted.get("log-driver"):
        yield f"log driver {wanted['log-driver']}", f'"LoggingDriver":{_go(wanted["log-driver"])}'
    for option in wanted.get("exec-opts") or ():
        if option.startswith("native.cgroupdriver="):
            yield f"cgroup driver {option.partition('=')[2]}", f'"CgroupDriver":{_go(option.partition("=")[2])}'
    if (wanted.get("features") or {}).get("cdi"):
        yield "CDI", '"CDISpecDirs":["'


def missing_from_daemon(info: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Which of the wanted keys the *running* daemon has not taken up, as far as `docker info` shows them."""
    said = _go(info)
    return [what for what, text in evidence(wanted) if text not in said]


def _registry(given: str) -> str:
    """As dockerd keeps it: an address without its scheme, a network by its first address."""
    name = given.rpartition("://")[2]
    try:
        return str(ip_network(name, strict=False)) if "/" in name else name
    except ValueError:
        return name.partition("/")[0]


def _go(value: object) -> str:
    """As Go writes it: compact, and without the signs that HTML has."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
