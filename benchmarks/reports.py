"""What the reports of a large fleet cost at the end of a run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured
from tests.results import fleet

HOSTS = 500


def reports() -> Iterator[Measured]:
    """The issue's targets: all reports of 500 hosts in under 5 s, the page under 3 MB."""
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        for each in fleet(HOSTS):
            (folder / f"{each.host}.json").write_text(json.dumps(each.as_json(), indent=2))
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "bringup", "report", str(folder)], check=True, capture_output=True, timeout=120)
        yield Measured(f"reports: `bringup report` on {HOSTS} hosts", time.perf_counter() - began, "s", 5)
        yield Measured("reports: its HTML page", (folder / "index.html").stat().st_size / 1e6, "MB", 3)
        yield Measured("reports: its JUnit XML", (folder / "junit.xml").stat().st_size / 1e6, "MB")
