"""Resource limits: what a host may give, and which lines of the user's win over ours. Pure.

Limits are bytes as a number, or "unlimited".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bringup.survey import Survey, known

Limit = int | Literal["unlimited"]
LIMITS_FILE = "/etc/security/limits.d/90-gpu-bringup.conf"
SYSTEMD_FILE = "/etc/systemd/system.conf.d/90-gpu-bringup.conf"
UNITS = ("containerd.service", "docker.service")
UNIT_FILES = {name: f"/etc/systemd/system/{name}.d/90-gpu-bringup.conf" for name in UNITS}


def attainable(wanted: Limit, hard: str | None, may_raise: bool | None) -> bool:
    """With CAP_SYS_RESOURCE anything; without it, what lies under the hard limit. Not known is no."""
    if may_raise or hard == "unlimited":
        return True
    return wanted != "unlimited" and hard is not None and hard.isdigit() and wanted <= int(hard)


def memlock_to_be_had(wanted: Limit, survey: Survey) -> Limit | None:
    """What is wanted, or None where this host cannot have it: asked for all the same, every unit and `docker run` would fail."""
    limits = survey["limits"]
    return wanted if attainable(wanted, limits["pid1_memlock_hard"], limits["may_raise"]) else None


def open_files_to_be_had(wanted: int | None, survey: Survey) -> int | None:
    """The same for the number of open files."""
    limits = survey["limits"]
    return wanted if wanted is not None and attainable(wanted, limits["pid1_open_files_hard"], limits["may_raise"]) else None


def memlock_files(memlock: Limit) -> dict[str, str]:
    """The files of ours, without comments (a survey leaves those out). limits.d counts in KiB, systemd in bytes."""
    kib = memlock if isinstance(memlock, str) else str(memlock // 1024)
    systemd = "infinity" if memlock == "unlimited" else str(memlock)
    return {
        LIMITS_FILE: "".join(f"{who} {kind} memlock {kib}\n" for who in ("*", "root") for kind in ("soft", "hard")),
        SYSTEMD_FILE: f"[Manager]\nDefaultLimitMEMLOCK={systemd}\n",
        **dict.fromkeys(UNIT_FILES.values(), f"[Service]\nLimitMEMLOCK={systemd}\n"),
    }


def overriding(survey: Survey) -> list[str]:
    """Lines of others that win over ours, each as `PATH: LINE`. They are somebody's choice, and stay."""
    ours = memlock_files("unlimited")
    return [
        *(f"{path}: {line}" for path, line in _lines(survey["limits"]["limits_d"]) if path not in ours and _wins(path, line)),
        *_assignments(survey["limits"]["systemd_dropins"], SYSTEMD_FILE, "DefaultLimitMEMLOCK"),
        *(each for file in UNIT_FILES.values() for each in _assignments(survey["docker"]["dropins"], file, "LimitMEMLOCK")),
    ]


def _wins(path: str, line: str) -> bool:
    """By pam_limits' rules: a line for one user or group wins over one for all, and of two of one kind the later."""
    fields = line.split("#")[0].split()
    if len(fields) < 4 or fields[1] not in ("soft", "hard", "-") or fields[2] != "memlock":
        return False
    return fields[0] not in ("*", "root") or (path.startswith("/etc/security/limits.d/") and path > LIMITS_FILE)


def _assignments(files: Mapping[str, object], ours: str, key: str) -> Iterator[str]:
    """Of drop-ins in one unit's folders, whatever these are, the last by name counts."""
    folder, name = ours.rsplit("/", 1)
    for path, line in _lines(files):
        other, _, its_name = path.rpartition("/")
        if other.rpartition("/")[2] == folder.rpartition("/")[2] and its_name > name and line.split("=")[0].strip() == key:
            yield f"{path}: {line}"


def _lines(files: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for path, text in files.items():
        if isinstance(text, str):
            yield from ((path, line.strip()) for line in text.splitlines())


def running_memlock(survey: Survey) -> dict[str, str]:
    """unit -> the soft limit of its daemon that runs, where it runs and could be read."""
    found = {
        "docker.service": known(survey["docker"]["memlock"]),
        "containerd.service": known(survey["docker"]["containerd_memlock"]),
    }
    return {name: each for name, each in found.items() if each is not None}
