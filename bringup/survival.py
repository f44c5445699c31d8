"""The kept result of /var/lib/gpu-bringup/proof.json -> checks: does a running container keep its GPU over what breaks hosts?"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from bringup.references import familiar, without_digest
from bringup.report import Check
from bringup.survey import Read, known, unreadable

PATH = "/var/lib/gpu-bringup/proof.json"
SCHEMA = 2
CURES = {
    "daemon-reload": "systemd took the GPU's devices from the container's cgroup: inject by CDI, or link NVIDIA's devices in /dev/char",
    "docker-restart": "the container did not keep running as it was: set live-restore, or expect containers to be started anew",
}

Subject: TypeAlias = dict[str, str | None]  # what a result is of: boot_id, kernel, driver, toolkit, docker, injection, image


def kept(text: Read[str]) -> dict[str, Any] | None:
    """The file's content; None where there is none that this version can read."""
    try:
        found = json.loads(known(text) or "")
    except ValueError:
        return None
    sound = isinstance(found, dict) and found.get("schema") == SCHEMA and isinstance(found.get("of"), dict)
    steps = found.get("steps") if sound else None
    return found if isinstance(steps, list) and all(isinstance(each, dict) for each in steps) else None


def rebooted(text: Read[str]) -> str | None:
    """The boot id after the reboot of a full proof."""
    found = kept(text)
    return str(found["rebooted"]) if found and found.get("rebooted") else None


def reboot_checks(text: Read[str], boot_id: str | None) -> list[Check]:
    """None where no reboot was tried in this boot: that is no failure, it is not checked."""
    if boot_id is None or rebooted(text) != boot_id:
        return []
    return [
        Check("survival-reboot", "pass", "the host came back from a reboot by itself, and what is proven here is proven after it")
    ]


def differing(kept: dict[str, Any], now: Subject) -> list[str]:
    """In what the host is not any more what the result is of, in words."""
    return [
        f"another {name.replace('_id', '')} ({kept['of'].get(name)}, now {value})"
        for name, value in now.items()
        if not (_same_image if name == "image" else str.__eq__)(str(kept["of"].get(name)), str(value))
    ]


def _same_image(one: str, other: str) -> bool:
    """A tag that was not resolved in this run may be the image that was."""
    if "@" in one and "@" in other:
        return familiar(one) == familiar(other)
    return without_digest(one) == without_digest(other)


def survival_checks(text: Read[str], now: Subject, wanted: tuple[str, ...]) -> list[Check]:
    """One check for each disturbance in `wanted`. A result of another boot, driver, Docker or image says nothing of this one."""
    why = unreadable(text)
    if why is not None:
        return [_skipped(each, f"{PATH} cannot be read: {why}") for each in wanted]
    if text is None:
        return [_skipped(each, "not tried yet") for each in wanted]
    found = kept(text)
    if found is None:
        return [_skipped(each, f"{PATH} is broken, or of another version than schema {SCHEMA}") for each in wanted]
    if others := differing(found, now):
        return [_skipped(each, f"was tried with {', '.join(others)}") for each in wanted]
    steps = {str(each.get("after")): each for each in found["steps"]}
    return [_judged(each, steps) for each in wanted]


def _skipped(disturbance: str, why: str) -> Check:
    return Check(f"survival-{disturbance}", "skipped", why)


def _judged(disturbance: str, steps: dict[str, dict[str, Any]]) -> Check:
    """What was dead before the disturbance says nothing of it."""
    name = f"survival-{disturbance}"
    before, after = _problem(steps.get("start")), _problem(steps.get(disturbance))
    if before:
        return Check(name, "fail", f"the kernel failed in the container before anything was disturbed: {before}")
    if disturbance not in steps or steps[disturbance].get("skipped"):
        return _skipped(disturbance, str(steps.get(disturbance, {}).get("skipped") or "not tried yet"))
    if after:
        return Check(name, "fail", f"the kernel ran before, and not after: {after}; {CURES.get(disturbance, '')}")
    return Check(name, "pass", "the same kernel gave the same right result before and after, in one running container")


def _problem(step: dict[str, Any] | None) -> str | None:
    if step is None:
        return "it was not tried"
    probe = step.get("probe")
    if not isinstance(probe, dict):
        return f"the probe gave no result (exit {step.get('exit')}): {step.get('said') or 'it printed nothing'}"
    failed = probe.get("failed")
    if failed:
        return f"{failed.get('stage')}: {failed.get('error')}" if isinstance(failed, dict) else str(failed)
    return None if probe.get("gpus") else "the probe saw no GPU"
