"""How quickly the command answers when it has nothing to do, and what it does not load for that."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measured import Measured, median_s

HEAVY = ("pyinfra", "gevent", "yaml")
ASK = f"""
import contextlib, io, sys
from bringup.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main(["--help"])
print(sum(name in sys.modules for name in {HEAVY!r}))
"""


def help_() -> Iterator[Measured]:
    """The issue's target: `bringup --help` in under 0.3 s, without pyinfra or gevent."""

    def run() -> None:
        subprocess.run([sys.executable, "-m", "bringup", "--help"], check=True, capture_output=True, timeout=60)

    yield Measured("help: bringup --help", median_s(run, 7), "s", 0.3)
    yield Measured(
        "help: a Python that does nothing", median_s(lambda: subprocess.run([sys.executable, "-c", ""], check=True), 7), "s"
    )
    loaded = subprocess.run([sys.executable, "-c", ASK], check=True, capture_output=True, text=True, timeout=60).stdout
    yield Measured(f"help: of {', '.join(HEAVY)} it loads", int(loaded), "", 0)
