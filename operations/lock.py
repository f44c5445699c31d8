"""One run at a time on a host: /run/gpu-bringup.lock, taken by the first operation that changes something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from weakref import WeakSet

from pyinfra import logger
from pyinfra.api import FunctionCommand, Host, State
from pyinfra.api.command import PyinfraCommand

from facts.live import current_host
from operations import shell
from operations.record import RUN, control_machine, report_problem

FOLDER = "/run/gpu-bringup.lock"  # gone with a reboot, as the work that it guards
STALE_S = 2 * 3600

# mkdir is atomic. Prints `taken`, or `AGE OWNER`: the seconds since it was taken, and by whom.
TAKE = f"""
mkdir {FOLDER} 2>/dev/null && printf '%s\\n' "$1" >{FOLDER}/owner && {{ echo taken; exit 0; }}
[ -d {FOLDER} ] || {{ echo "{FOLDER} cannot be made: is _sudo set?"; exit 1; }}
echo "$(($(date +%s) - $(stat -c %Y {FOLDER}))) $(cat {FOLDER}/owner 2>/dev/null)"
"""
# mv is atomic: of two that find the same lock stale, one takes it away; one that is fresh by then goes back to its owner
BREAK = f"""
mv {FOLDER} {FOLDER}.stale.$$ || exit 0
if [ "$(cat {FOLDER}.stale.$$/owner 2>/dev/null)" = "$1" ]; then rm -rf {FOLDER}.stale.$$; else mv {FOLDER}.stale.$$ {FOLDER}; fi
"""
RELEASE = f'[ "$(cat {FOLDER}/owner 2>/dev/null)" = "$1" ] && rm -rf {FOLDER}'

_holding: WeakSet[Host] = WeakSet()


def owner() -> str:
    return f"{RUN.id} {control_machine()}"


def held() -> Iterator[PyinfraCommand]:
    """The command that takes the lock, where this run does not hold it yet."""
    if current_host() not in _holding:
        yield FunctionCommand(_take, (), {})


def _take(state: State, host: Host) -> bool:
    for _ in range(2):
        success, said = shell.run(host, TAKE, owner())
        if not success:
            report_problem(host, f"the lock {FOLDER} could not be taken: {said}")
            return False
        said = said.strip().splitlines()[-1] if said.strip() else ""
        if said == "taken":
            _holding.add(host)
            return True
        age, _, holder = said.partition(" ")
        if not age.isdigit():
            report_problem(host, f"the lock {FOLDER} could not be taken: {said or 'no answer'}")
            return False
        if not is_stale(int(age), holder):
            report_problem(
                host,
                f"another run holds {FOLDER}: {describe(holder)}, since {age} s; wait for it, or remove the folder if that run is dead",
            )
            return False
        host.log(f"breaking a stale lock: {describe(holder)}, {age} s old", logger.warning)
        shell.run(host, BREAK, holder)
    report_problem(host, f"another run took {FOLDER} just now: wait for it")
    return False


def describe(holder: str) -> str:
    """`RUN_ID name/machine/pid` in words."""
    run, _, where = holder.partition(" ")
    name, _, rest = where.partition("/")
    return f"run {run} from {name} (process {rest.rpartition('/')[2]})" if where else holder or "an owner that left no name"


def is_stale(age_s: int, holder: str) -> bool:
    """Older than two hours; or made by a process of this very machine that is gone (killed: it could not give it back)."""
    if age_s >= STALE_S:
        return True
    where = holder.partition(" ")[2]
    machine, _, pid = where.rpartition("/")
    if machine != control_machine().rpartition("/")[0] or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


def forget(host: Host) -> None:
    """After a reboot the folder is gone: the next change takes it again."""
    _holding.discard(host)


def release(host: Host) -> None:
    """Give it back, where this run holds it. A lost host keeps it until its reboot."""
    if host in _holding:
        _holding.discard(host)
        shell.run(host, RELEASE, owner(), timeout_s=15)
