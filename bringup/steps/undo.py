"""Taking back what this project did to a host, from the host's own provenance. Pure.

What was there before stays: packages that were installed, keys of daemon.json that differ by now, files of others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bringup import daemon_json, limits, survival
from bringup.command_line import GRUB_FILE
from bringup.sources import OURS
from bringup.steps import cdi, device_links, driver, provenance, sources
from bringup.steps.packages import is_driver_package
from bringup.survey import Survey, known, unit

DOCKER_PACKAGES = ("docker", "containerd", "moby", "runc")


@dataclass(frozen=True)
class Undo:
    """What is to be taken back. `daemon_json`: the file's new text, "" for no file, None for no change."""

    packages: tuple[str, ...]
    unhold: tuple[str, ...]
    files: tuple[str, ...]
    restore: tuple[str, ...]  # source files that we disabled: path.disabled goes back to path
    daemon_json: str | None
    stream: str | None  # dnf's module stream that we enabled
    keeps: tuple[str, ...]  # what stays although it is ours, and why


def undo(survey: Survey) -> Undo | None:
    """None where this project never finished a run on the host, and left nothing."""
    record = provenance.current(survey)
    ours = set(survey["packages"]["ours"])
    if not record and not ours and not survey["our_files"]:
        return None
    there = survey["packages"]["installed"]
    recorded = set(record.get("packages", {}))
    versions = {version for name, version in record.get("packages", {}).items() if name in ours}
    # libraries came with the driver's packages, at their version
    libraries = {name for name, each in there.items() if each["version"] in versions and is_driver_package(name)}
    gone = sorted(name for name in ours | libraries if name in there)
    held = set(survey["packages"]["held_by_us"])
    keeps: list[str] = []
    running = known(survey["docker"]["running"]) or []
    if running and any(is_docker(name) for name in gone):
        keeps.append(f"Docker stays: {', '.join(each['name'] for each in running)} running")
        gone = [name for name in gone if not is_docker(name)]
    headers = [name for name in gone if name.startswith(("linux-headers", "kernel-devel"))]
    if headers and unit(survey, "dkms.service"):
        keeps.append(f"{', '.join(headers)} stay: dkms may build other modules with them")
        gone = [name for name in gone if name not in headers]
    # Docker's source is in no record: it is there only where Docker was installed by us
    lists = [each for each in survey["packages"]["repositories"] if each.rsplit("/", 1)[-1].startswith(OURS)]
    keys = [each for each in survey["packages"]["keyrings"] if each.rsplit("/", 1)[-1].startswith(f"RPM-GPG-KEY-{OURS}")]
    files = [
        *dict.fromkeys((*record.get("repositories", {}), *lists)),
        *dict.fromkeys((*record.get("keyrings", []), *keys)),
        driver.PREFERENCES_FILE,
        sources.SETTINGS_FILE,
        driver.MODPROBE_FILE,
    ]
    files += [*limits.memlock_files("unlimited"), cdi.SPEC, *cdi.FILES, survival.PATH]
    files += [*device_links.FILES, GRUB_FILE, driver.PERSISTENCE_FILE]
    files += [provenance.INSTALLED, provenance.HELD, provenance.PULLED, provenance.DISABLED, provenance.PATH]
    return Undo(
        packages=tuple(gone),
        unhold=tuple(sorted(name for name in (recorded | libraries | held) if name in there and there[name]["held"])),
        files=tuple(files),
        restore=tuple(sorted(set(survey["packages"]["disabled"]))),
        daemon_json=_without_ours(known(survey["docker"]["daemon_json"]), record.get("docker_options", {})),
        stream=record.get("stream"),
        keeps=tuple(keeps),
    )


def is_docker(name: str) -> bool:
    return name.startswith(DOCKER_PACKAGES)


def _without_ours(text: str | None, ours: Mapping[str, Any]) -> str | None:
    """daemon.json without the keys that still have the values that we gave them."""
    if text is None:
        return None
    have = daemon_json.parse(text)
    rest = _subtract(have, ours)
    if rest == have:
        return None
    return json.dumps(rest, indent=2) + "\n" if rest else ""


def _subtract(have: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    rest: dict[str, Any] = {}
    for key, value in have.items():
        wanted = ours.get(key)
        if key not in ours:
            rest[key] = value
        elif isinstance(value, dict) and isinstance(wanted, Mapping):
            inner = _subtract(value, wanted)
            if inner:
                rest[key] = inner
        elif isinstance(value, list) and isinstance(wanted, list):
            kept = [each for each in value if each not in wanted]
            if kept:
                rest[key] = kept
        elif value != wanted:
            rest[key] = value
    return rest
