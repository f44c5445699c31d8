"""Locked memory: RDMA registration and pinned buffers fail on the kernel's default of 8 MiB."""

from __future__ import annotations

from bringup.limits import LIMITS_FILE, SYSTEMD_FILE, UNIT_FILES, memlock_files, running_memlock
from bringup.steps import Change, Skip, edited
from bringup.survey import Survey
from bringup.target import Target


def memlock(survey: Survey, target: Target) -> Change | Skip | None:
    """Locked memory for users, systemd's units, and the daemons of Docker, those that run included."""
    if target.memlock is None:
        hard, may = survey["limits"]["pid1_memlock_hard"], survey["limits"]["may_raise"]
        why = (
            "may not raise hard limits (no CAP_SYS_RESOURCE)"
            if may is False
            else "does not tell whether it may raise hard limits"
        )
        return Skip(f"PID 1 of this host {why}: memlock stays at {hard}")
    wanted = memlock_files(target.memlock)
    have = {**survey["limits"]["limits_d"], **survey["limits"]["systemd_dropins"], **survey["docker"]["dropins"]}
    wrong = [path for path, text in wanted.items() if have.get(path) != text]
    old = [f"{unit} that runs" for unit, limit in running_memlock(survey).items() if limit != str(target.memlock)]
    if not wrong and not old:
        return None
    after = edited(survey)
    after["limits"]["limits_d"][LIMITS_FILE] = wanted[LIMITS_FILE]
    after["limits"]["systemd_dropins"][SYSTEMD_FILE] = wanted[SYSTEMD_FILE]
    after["docker"]["dropins"].update({path: wanted[path] for path in UNIT_FILES.values()})
    for key in ("memlock", "containerd_memlock"):
        if after["docker"][key] is not None:
            after["docker"][key] = str(target.memlock)
    what = "write the limits, and give them to the daemons that run"
    return Change(f"memlock is not {target.memlock} in {', '.join([*wrong, *old])}", what, after)
