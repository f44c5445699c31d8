"""What planning costs the control machine: one host, and a fleet of saved surveys through the command."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from benchmarks.measured import Measured, median_s
from bringup import catalog
from bringup.plan import make_plan
from bringup.settings import read_settings
from bringup.survey.parse import parse_survey

SAMPLES = Path(__file__).parents[1] / "tests" / "samples" / "surveys"
HOSTS = 1000
DAY = date(2026, 11, 30)
SETTINGS = {"gpu_accept": ["container-host", "untried-distribution"]}  # the samples are of lab hosts


def plan() -> Iterator[Measured]:
    """The issue's targets: one host parsed and planned in under 20 ms, 1,000 saved surveys in under 10 s."""
    texts = [path.read_text().splitlines() for path in sorted(SAMPLES.glob("*.txt"))]
    settings = read_settings(SETTINGS)
    surveys = [
        parse_survey(each, float(next(line for line in each if line.startswith("|179"))[1:].rstrip("N%."))) for each in texts
    ]

    def one() -> None:
        for lines, taken in zip(texts, surveys, strict=True):
            make_plan(parse_survey(lines, taken["clock_s"]), settings, catalog.load(), DAY)

    yield Measured("plan: parse and plan one host", median_s(one, 20) / len(texts) * 1000, "ms", 20)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fleet.json"
        fleet = {f"host-{at}": surveys[at % len(surveys)] for at in range(HOSTS)}
        file.write_text(json.dumps({"facts.survey.HostSurvey": fleet}))
        chosen = [f"--set={key}={json.dumps(value)}" for key, value in SETTINGS.items()]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "bringup", "plan", "--survey", str(file), "--today", str(DAY), *chosen],
            capture_output=True,
            timeout=300,
        )
        yield Measured(f"plan: the command on {HOSTS:,} saved surveys", time.perf_counter() - began, "s", 10)
        yield Measured("plan: hosts in its table", sum(line.startswith(b"host-") for line in done.stdout.splitlines()), "")
