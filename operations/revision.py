"""Which revision of this project is running."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from bringup import __version__


@functools.cache
def revision() -> str:
    """`0.1.0 (git 1a2b3c4d)`, with `+changes` where the checkout has some; without git only the version."""
    checkout = Path(__file__).resolve().parent.parent
    try:
        described = subprocess.run(
            ["git", "-C", str(checkout), "describe", "--always", "--dirty=+changes", "--abbrev=12"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return __version__
    return f"{__version__} (git {described.stdout.strip()})"
