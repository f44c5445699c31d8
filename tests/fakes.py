"""Hosts for pyinfra's @fake connector that answer as real ones would: the survey, the lock, and the two facts of the proof."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bringup.startup import docker_ns
from tests.surveys import KEYS, SETTINGS, Host, packages_of

SAMPLE = (Path(__file__).parent / "samples" / "nvidia-smi-q-h200.xml").read_text()
START = docker_ns("2026-11-30T21:43:00Z")
# what is sent when: the mark of each script
SURVEY, LOCK, SMI, STARTUP = "@@gpu-bringup-survey 1", "mkdir /run/gpu-bringup.lock", "nvidia-smi -q -x", "docker create"
LIMITS, BENCHMARK = "Max locked memory *", "nvidia-smi topo -m"
IN_PLACE, LOGIN, WAYS = "systemd-run --quiet", "s/^/login /", "way cdi"
INDEX = "apt-helper -o Acquire::Retries=2"

# what ContainerLimits' script prints of both users
SOUND = ["memlock unlimited", "nofile 1048576", f"shm {8 << 20}", "cgroup 2", "device /dev/nvidia0", "device /dev/nvidiactl"]
INSIDE = ["user 0", *SOUND, "user 65534", *SOUND]


def started(failed: dict[str, str] | None = None, **probe_says: object) -> list[str]:
    """What CudaStartup's script prints for one start of a container."""
    at = START + 400_000_000
    stages = [
        "interpreter",
        "import_torch",
        "dlopen_libcuda",
        "cu_init",
        "is_available",
        "context",
        "first_kernel",
        "other_gpus",
        "end",
    ]
    probe = {
        "stamps": [[name, at + place * 1_000_000] for place, name in enumerate(stages)], "failed": failed, "gpus": ["NVIDIA H200"],
        "torch": "2.11.0", "clock_drift_ns": 0, **probe_says,
    }  # fmt: skip
    return [f"run cdi {START} {START + 1_000_000} {START + 500_000_000} 0 2026-11-30T21:43:00.3Z", "|" + json.dumps(probe)]


def memlock(where: str, soft: str = "unlimited", hard: str = "unlimited") -> list[str]:
    """What the scripts of facts.limits print of one place."""
    files, locked = "Max open files            1048576   1048576   files", f"Max locked memory         {soft}  {hard}  bytes"
    return [f"{where} {files}", f"{where} {locked}"]


def offered() -> list[str]:
    """What RepositoryIndex's script prints of a repository with our test key and all that a plan wants."""
    lines = packages_of("debian12", fabric=True).splitlines()
    key = base64.b64encode((KEYS / "ed25519.gpg").read_bytes()).decode()
    return [f"key {key}", *(f"version {' '.join(line.split()[:2])}" for line in lines)]


def ways(*good: str, gpus: int = 1) -> list[str]:
    """What facts.docker_ways' script prints where these ways reach the GPUs."""
    lines = []
    for each in ("cdi", "runtime", "gpus"):
        lines += [
            f"way {each}",
            *([f"|GPU {at}: NVIDIA H200 (UUID: GPU-{at})" for at in range(gpus)] if each in good else ["|docker: no"]),
        ]
    return lines


def responses(survey: Host | Sequence[str], **instead: Any) -> dict[str, Any]:
    """`fake_responses` of a host: `lock="60 run other/x/1"`, `smi=…`, `startup=…`, `limits=…`, `benchmark=…` and `index=…`
    replace what a good host says.

    Without an index there is no repository that answers.
    """
    lines = survey.set("clock", f"{time.time():.3f}").lines if isinstance(survey, Host) else list(survey)
    return {
        SURVEY: lines,
        LOCK: instead.get("lock", "taken"),
        SMI: instead.get("smi", f"exit 0\n{SAMPLE}"),
        STARTUP: instead.get("startup", started()),
        LIMITS: instead.get("limits", INSIDE),
        BENCHMARK: instead.get("benchmark", []),
        IN_PLACE: instead.get("in_place", [*memlock("unit"), *memlock("user")]),
        LOGIN: instead.get("login", memlock("login")),
        WAYS: instead.get("ways", ways("cdi", "runtime")),
        INDEX: instead.get("index", []),
    }


def data(survey: Host | Sequence[str], **more: Any) -> dict[str, Any]:
    """An inventory's data of one fake host: with SETTINGS, `responses`' replacements, and settings of its own (gpu_…)."""
    instead = {
        key: more.pop(key)
        for key in ("lock", "smi", "startup", "limits", "benchmark", "index", "in_place", "login", "ways")
        if key in more
    }
    return {"fake_delay": 0, "fake_delay_jitter": 0, "fake_responses": responses(survey, **instead), **SETTINGS, **more}
