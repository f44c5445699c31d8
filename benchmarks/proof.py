"""What a proof costs on a lab host beside the image's own import of torch, and what the probe costs of what it measures."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measured import Measured
from bringup import probes
from e2e import own_lab

CHECKOUT = Path(__file__).parents[1]
RUNS = 3
STANDIN = CHECKOUT / "e2e/lab/standins/torch"
# the same program without stamps and report: what is left of it is the probe's own
PLAIN = """\
import ctypes, json, os, sys, time
try:
    import torch
    ctypes.CDLL("libcuda.so.1").cuInit(0)
except Exception:
    pass
"""


def proof() -> Iterator[Measured]:
    """The issue's targets: a quick proof in at most 10 s beyond import torch, a standard one in 60 s; the probe costs under 5 %."""
    yield from probe_cost()
    own_lab.choose(["", "test"])  # a lab that is up is not ours to end
    from e2e.lab import machine
    from e2e.lab.lab import Lab

    why = machine.impossible()
    if why is not None:
        print(f"proof: left out, since this machine cannot hold the lab: {why}", file=sys.stderr)
        return
    Lab.down()
    Lab.up(1, "debian13")
    try:
        deploy("deploys/gpu_host.py", "quick")
        quick = [deploy("deploys/verify.py", "quick") for _ in range(RUNS)]
        seconds = statistics.median(taken for taken, _ in quick)
        imports = statistics.median(stage(result, "import_torch") for _, result in quick) / 1000
        yield Measured("proof: verify.py, gpu_verify quick, one host", seconds, "s")
        yield Measured("proof: the same beyond the image's import torch", seconds - imports, "s", 10)
        share = statistics.median(unattributed(result) for _, result in quick)
        yield Measured("proof: share of a start that belongs to no stage", share * 100, "%", 5)
        first, _ = deploy("deploys/verify.py", "standard")
        yield Measured("proof: gpu_verify standard, with daemon-reload", first, "s", 60)
    finally:
        Lab.down()


def deploy(path: str, level: str) -> tuple[float, dict[str, Any]]:
    """(seconds, the host's result) of a whole run."""
    with tempfile.TemporaryDirectory() as reports:
        command = [sys.executable, "-m", "pyinfra", "-y", "inventories/lab.py", path]
        data = ["--data", f"gpu_reports={reports}", "--data", f"gpu_verify={level}"]
        began = time.perf_counter()
        subprocess.run([*command, *data], cwd=CHECKOUT, check=True, capture_output=True, timeout=420)
        seconds = time.perf_counter() - began
        (file,) = (Path(reports) / "latest").glob("lab-*.json")
        return seconds, json.loads(file.read_text())


def stage(result: dict[str, Any], name: str) -> float:
    """Milliseconds."""
    return float(result["measured"]["cuda_startup"]["stages_ms"][name]["median"])


def unattributed(result: dict[str, Any]) -> float:
    """A fraction of the whole."""
    sample = result["measured"]["cuda_startup"]["samples"][0]
    return float(sample["unattributed_ms"]) / float(sample["total_ms"])


def probe_cost() -> Iterator[Measured]:
    """On this machine, with the lab's stand-in for torch: a whole start of Python takes 20 ms, so that little is hidden by it."""
    with_it, without = (statistics.median(run(text) for _ in range(15)) for text in (probes.source("cuda_startup"), PLAIN))
    yield Measured("proof: Python and stand-in torch, without the probe", without * 1000, "ms")
    yield Measured("proof: what the probe adds, of one H200's start of 3.2 s", (with_it - without) / 3.2 * 100, "%", 5)


def run(text: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-"], input=text, text=True, capture_output=True, timeout=60, env={"PYTHONPATH": str(STANDIN)}
    )
    return time.perf_counter() - began
