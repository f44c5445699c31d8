"""Merging Docker's daemon.json: every key of the user's stays, and stays where it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bringup.errors import HostError

PATH = "/etc/docker/daemon.json"


def parse(text: str | None) -> dict[str, Any]:
    """The file's content; an absent, empty or blank file is {} (as dockerd reads it). Raises HostError on anything else."""
    if text is None or not text.strip().removeprefix("\ufeff"):
        return {}
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise HostError(
            f"{PATH} is not JSON (line {error.lineno}, column {error.colno}: {error.msg}): mend it or move it away"
        ) from None
    except RecursionError:
        raise HostError(f"{PATH} is not JSON that can be read (nested too deep): mend it or move it away") from None
    if not isinstance(value, dict):
        raise HostError(f"{PATH} holds {type(value).__name__}, not an object: mend it or move it away")
    return value


def merge(have: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """`have` with `wanted` in it: objects are merged key by key, lists get what they lack, other values are replaced."""
    merged = dict(have)
    for key, value in wanted.items():
        present = merged.get(key)
        if isinstance(value, Mapping):
            merged[key] = merge(present if isinstance(present, Mapping) else {}, value)
        elif isinstance(value, list | tuple):
            old = list(present) if isinstance(present, list) else []
            merged[key] = old + [each for each in value if each not in old]
        else:
            merged[key] = value
    return merged


def merged_text(text: str | None, wanted: Mapping[str, Any]) -> str | None:
    """The new text of the file, or None where nothing differs. Raises HostError when the file cannot be merged."""
    have = parse(text)
    merged = merge(have, wanted)
    new = json.dumps(merged, indent=2)  # compared as text: 1 == True in Python, and not in dockerd
    return None if new == json.dumps(have, indent=2) else new + "\n"


def missing_from_daemon(info: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Which of the wanted keys the *running* daemon has not taken up, as far as `docker info` shows them."""
    missing = []
    runtimes, config = (found if isinstance(found := info.get(key), Mapping) else {} for key in ("Runtimes", "RegistryConfig"))
    for name in wanted.get("runtimes", {}):
        if name not in runtimes:
            missing.append(f"runtime {name}")
    if "default-runtime" in wanted and info.get("DefaultRuntime") != wanted["default-runtime"]:
        missing.append(f"default runtime {wanted['default-runtime']}")
    known = {*(config.get("IndexConfigs") or {}), *(config.get("InsecureRegistryCIDRs") or [])}  # names, and networks
    for registry in wanted.get("insecure-registries", ()):
        if registry not in known:
            missing.append(f"insecure registry {registry}")
    if "live-restore" in wanted and bool(info.get("LiveRestoreEnabled")) != wanted["live-restore"]:
        missing.append("live-restore")
    if wanted.get("features", {}).get("cdi") and not info.get("CDISpecDirs"):
        missing.append("CDI")
    return missing
