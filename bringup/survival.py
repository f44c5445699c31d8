"""The kept result of /var/lib/gpu-bringup/proof.json -> checks: does a running container keep its GPU over what breaks hosts?"""

from __future__ import annotations

import json
from typing import Any

from bringup.report import Check
from bringup.survey import Read, known, unreadable

PATH = "/var/lib/gpu-bringup/proof.json"
SCHEMA = 1
CURES = {
    "daemon-reload": "systemd took the GPU's devices from the container's cgroup: inject by CDI, or link NVIDIA's devices in /dev/char",
    "docker-restart": "the container did not keep running as it was: set live-restore, or expect containers to be started anew",
}


def survival_checks(kept: Read[str], boot_id: str | None, image: str, wanted: tuple[str, ...]) -> list[Check]:
    """One check for each disturbance in `wanted`. A result of another boot or image says nothing of this one."""
    why = unreadable(kept)
    text = known(kept)
    if why is not None or text is None:
        return [
            _skipped(each, f"{PATH} cannot be read: {why}" if why else "not tried yet: run deploys/gpu_host.py")
            for each in wanted
        ]
    try:
        found = json.loads(text)
        steps = {each["after"]: each for each in found["steps"]}
        schema, boot, of = found["schema"], found["boot_id"], found["image"]
    except (ValueError, TypeError, KeyError):
        return [_skipped(each, f"{PATH} is broken: remove it and run deploys/gpu_host.py") for each in wanted]
    if schema != SCHEMA:
        return [_skipped(each, f"{PATH} has schema {schema}, this version knows {SCHEMA}") for each in wanted]
    if (boot, of) != (boot_id, image):
        return [_skipped(each, "was tried on another boot or with another image: run deploys/gpu_host.py") for each in wanted]
    return [_judged(each, steps) for each in wanted]


def _skipped(disturbance: str, why: str) -> Check:
    return Check(f"survival-{disturbance}", "skipped", why)


def _judged(disturbance: str, steps: dict[str, dict[str, Any]]) -> Check:
    """What was dead before the disturbance says nothing of it."""
    name = f"survival-{disturbance}"
    before, after = _problem(steps.get("start")), _problem(steps.get(disturbance))
    if before:
        return Check(name, "fail", f"the kernel failed in the container before anything was disturbed: {before}")
    if steps.get(disturbance, {}).get("skipped"):
        return Check(name, "skipped", str(steps[disturbance]["skipped"]))
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
        return f"{failed.get('stage')}: {failed.get('error')}"
    return None if probe.get("gpus") else "the probe saw no GPU"
