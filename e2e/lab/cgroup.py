"""Control groups (v2): everything that the lab runs lies in one tree, so that all of it is found and ended whatever happened to `up`.

The files that are used here (cgroup.procs, cgroup.kill) need no controller, so this also works on machines whose controllers are bound
to v1 hierarchies.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from .errors import LabError


def mounted() -> Path:
    """Where this machine has its cgroup v2 hierarchy."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] == "cgroup2":
            return Path(before.split()[4])
    raise LabError("this machine has no cgroup v2 hierarchy mounted: mount -t cgroup2 none /sys/fs/cgroup")


def make(path: Path) -> Path:
    """The group, made with its parents, with every controller that its parent has to give."""
    while not path.exists():
        if path.parent != mounted():
            make(path.parent)
            # refused for some controllers when processes live in the parent: the group then goes without these limits
            with contextlib.suppress(OSError):
                for controller in (path.parent / "cgroup.controllers").read_text().split():
                    (path.parent / "cgroup.subtree_control").write_text(f"+{controller}")
        # another thread may have made it, or removed the empty parent
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            path.mkdir()
    return path


def entering(path: Path, argv: Sequence[str]) -> list[str]:
    """The command line that runs argv as a member of the group."""
    return ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(path), *argv]


def is_populated(path: Path) -> bool:
    """Does any process live in the group or below it?"""
    try:
        return "populated 1" in (path / "cgroup.events").read_text().splitlines()
    except FileNotFoundError:
        return False


def remove(path: Path, timeout_s: float = 20) -> None:
    """Kills every process in the group and below, at once, as a power cut does; then removes the groups."""
    with contextlib.suppress(FileNotFoundError):  # not there, or removed by someone else meanwhile
        (path / "cgroup.kill").write_text("1")
        deadline = time.monotonic() + timeout_s
        while is_populated(path):
            if time.monotonic() > deadline:
                pids = sorted(int(pid) for group in path.rglob("cgroup.procs") for pid in group.read_text().split())
                raise LabError(f"processes of the lab were not gone {timeout_s:.0f} s after they were killed: {pids}")
            time.sleep(0.01)
        for group in sorted((p for p in path.rglob("*") if p.is_dir()), key=lambda p: len(p.parts), reverse=True):
            group.rmdir()
        path.rmdir()


def remove_if_empty(path: Path) -> None:
    """Removes a group that nothing is in any more; leaves it otherwise."""
    with contextlib.suppress(OSError):
        path.rmdir()
