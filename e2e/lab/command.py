"""Running the machine's own programs, and saying what goes on while they run."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import LabError


def say(text: str) -> None:
    """One progress line for the user; on stderr, since stdout is for answers."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def run(argv: Sequence[str], *, stdin: str = "", check: bool = True, timeout_s: float = 60) -> str:
    """The standard output of a program. LabError with its last words when it fails (unless check is False) or takes too long."""
    shown = shlex.join(argv)
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, errors="replace", timeout=timeout_s)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} was not found: python -m e2e requirements names what to install") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"gave up on `{shown}` after {timeout_s:.0f} s") from None
    if check and done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
        raise LabError(f"`{shown}` failed (exit {done.returncode}): {words}")
    return done.stdout


def remove(path: Path) -> None:
    """Removes a file or a folder with all that is in it, unless something is mounted there; nothing when it is not there."""
    run(["rm", "-rf", "--one-file-system", str(path)], timeout_s=300)
