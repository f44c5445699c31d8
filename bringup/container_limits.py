"""What a container may use, seen from inside as root and as another user -> checks. Limits of the host say nothing of either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from bringup.report import Check
from bringup.target import Target

ROOT, OTHER = "0", "65534"  # user ids; the second is `nobody` wherever it has a name
SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Inside(TypedDict):
    """What one user sees; None: not told. memlock and nofile: soft limits, bytes and a count as text, or `unlimited`."""

    memlock: str | None
    nofile: str | None
    shm_bytes: int | None
    cgroup_version: int | None
    devices: list[str]  # NVIDIA's device files that this user can read and write
    closed: list[str]  # those that it cannot


class Limits(TypedDict):
    """`problem`: why no container was started. `users`: by user id."""

    problem: str | None
    users: dict[str, Inside]


def limit_checks(found: Limits | None, target: Target) -> list[Check]:
    if found is None or not found["users"]:
        return [Check("limits-in-container", "skipped", (found and found["problem"]) or "the host did not answer")]
    users = found["users"]
    checks = [_memlock(users, target), _devices(users)]
    wanted = target.docker.options.get("default-shm-size")
    if wanted:
        checks.append(_shm(users, str(wanted)))
    lacking = sorted({ROOT, OTHER} - set(users))
    if lacking:
        checks.append(Check("limits-in-container", "skipped", f"not seen as user {', '.join(lacking)}: {found['problem']}"))
    return checks


def _memlock(users: Mapping[str, Inside], target: Target) -> Check:
    """A capability helps root alone: registered memory of another user is bounded by this limit whatever the container was given."""
    name = "memlock-in-container"
    seen = {user: str(each["memlock"]) for user, each in users.items()}
    told = _told(seen)
    if target.memlock is None:
        reason = f"{told}: all that this host may give (PID 1 may not raise hard limits)"
        return Check(name, "pass" if set(seen.values()) == {"unlimited"} else "warn", reason)
    wrong = {user: value for user, value in seen.items() if value != str(target.memlock)}
    if not wrong:
        return Check(name, "pass", told)
    said = f"{_told(wrong)} in the container, {target.memlock} is wanted: RDMA and pinned memory will fail"
    return Check(name, "fail", said, measured=_told(wrong), expected=str(target.memlock))


def _shm(users: Mapping[str, Inside], wanted: str) -> Check:
    name = "shm-in-container"
    wrong = {user: f"{each['shm_bytes']} bytes" for user, each in users.items() if each["shm_bytes"] != bytes_of(wanted)}
    if not wrong:
        return Check(name, "pass", wanted)
    said = f"{_told(wrong)} in the container, {wanted} is wanted: data loaders and NCCL run out of shared memory"
    return Check(name, "fail", said, measured=_told(wrong), expected=wanted)


def _devices(users: Mapping[str, Inside]) -> Check:
    """A GPU that root alone can open fails in every image that runs as another user."""
    name = "devices-in-container"
    closed = {user: ", ".join(each["closed"]) for user, each in users.items() if each["closed"]}
    if closed:
        return Check(name, "fail", f"no permission for {_told(closed)}: look at NVreg_DeviceFileMode and the CDI spec's fileMode")
    if not all(each["devices"] for each in users.values()):
        return Check(name, "fail", "there is no NVIDIA device file in the container")
    first = next(iter(users.values()))
    told = f"cgroup v{first['cgroup_version'] or '?'}, {first['nofile'] or '?'} open files"
    return Check(name, "pass", f"root and other users can use {len(first['devices'])} device files; {told}")


def _told(of_users: Mapping[str, str]) -> str:
    """`unlimited`, or where they differ, or it is not all of them, `8388608 (user 65534)`."""
    if len(set(of_users.values())) == 1 and len(of_users) > 1:
        return next(iter(of_users.values()))
    return ", ".join(f"{value} (user {user})" for user, value in of_users.items())


def bytes_of(size: str) -> int:
    """Of `8g`, as Docker reads it."""
    unit = size[-1].lower()
    return int(size[:-1]) * SIZES[unit] if unit in SIZES else int(size)
