"""What a pull costs beside `docker pull` of the same digest, and whether memory here grows with the image; on a lab host."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured
from e2e import own_lab

CHECKOUT = Path(__file__).parents[1]
RUNS, QUICK_RUNS = 5, 2  # of each; in turns, and which comes first changes: a disk that others use gives seconds of noise
MEGABYTE = 1 << 20
SMALL, LARGE = (2, 8), (6, 160)  # layers, and megabytes of each
SETUP = ("deploys/preflight.py", "deploys/container_runtime.py")
# on the host itself, so that nothing of a connection counts for Docker
DOCKER = 'began=$(date +%s%N); docker pull --quiet "$0" >/dev/null && echo $(( ($(date +%s%N) - began) / 1000000 ))'
FORGET = 'docker image rm -f "$(docker image ls -q --no-trunc "$0" | head -n 1)" >/dev/null 2>&1; sync; true'


def images(quick: bool) -> Iterator[Measured]:
    """The issue's targets: at most 5 % over docker pull; memory of the control machine does not grow with the image."""
    own_lab.choose(["", "test"])  # a lab that is up is not ours to end
    from e2e.lab import machine, registry, registry_faults
    from e2e.lab.lab import Lab

    why = machine.impossible()
    if why is not None:
        print(f"images: left out, since this machine cannot hold the lab: {why}", file=sys.stderr)
        return
    Lab.down()
    lab = Lab.up(1, "debian12")
    try:
        command = [sys.executable, "-m", "pyinfra", "-y", "inventories/lab.py", *SETUP]
        with tempfile.TemporaryDirectory() as reports:
            subprocess.run(
                [*command, "--data", f"gpu_reports={reports}"], cwd=CHECKOUT, check=True, capture_output=True, timeout=300
            )
        host = lab.host("lab-1")
        names = {}
        for name, (count, size) in (("small", SMALL), ("large", LARGE)):
            digest = registry_faults.make_image(lab.network, name, "1", [os.urandom(size * MEGABYTE) for _ in range(count)])
            names[name] = f"{registry.address(lab.network)}/{name}@{digest}"
        docker: list[float] = []
        ours: list[float] = []
        memory: dict[str, float] = {}
        for turn in range(2 * (QUICK_RUNS if quick else RUNS)):
            host.run(f"sh -c '{FORGET}' {names['large']}", sudo=True)
            if turn % 4 in (0, 3):
                docker.append(int(host.run(f"sh -c '{DOCKER}' {names['large']}", sudo=True, timeout_s=300).stdout) / 1000)
            else:
                seconds, memory["large"] = pulled(names["large"])
                ours.append(seconds)
        _, memory["small"] = pulled(names["small"])
        megabytes = LARGE[0] * LARGE[1]
        yield Measured(f"images: docker pull of {megabytes} MiB in {LARGE[0]} layers", statistics.median(docker), "s")
        yield Measured(
            "images: the same digest by operations.image_pull", statistics.median(ours), "s", statistics.median(docker) * 1.05
        )
        yield Measured(f"images: memory here while {SMALL[0] * SMALL[1]} MiB are pulled", memory["small"], "MiB")
        yield Measured(f"images: memory here while {megabytes} MiB are pulled", memory["large"], "MiB", memory["small"] * 1.02)
    finally:
        Lab.down()


def pulled(reference: str) -> tuple[float, float]:
    """(seconds, peak MiB of this side's process) of one pull, in a process of its own."""
    program = f"from benchmarks.images import pull_here; pull_here({reference!r})"
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, check=True, capture_output=True, text=True, timeout=600)
    found = json.loads(done.stdout.splitlines()[-1])
    return float(found["seconds"]), float(found["peak_mib"])


def pull_here(reference: str) -> None:
    """Prints seconds and the peak of memory as JSON; run by `pulled`."""
    import re
    import runpy
    import time

    from pyinfra.api import Config, Inventory, State
    from pyinfra.api.connect import connect_all, disconnect_all

    from bringup import catalog
    from bringup.policy.images import how_pulled
    from bringup.settings import Settings
    from operations.image_pull import pull

    hosts, data = runpy.run_path(str(CHECKOUT / "inventories" / "lab.py"))["lab"]
    state = State(Inventory((hosts, data)), Config(SUDO=True))
    connect_all(state)
    (host,) = state.inventory
    began = time.perf_counter()
    problem = pull(host, reference, how_pulled(Settings(), catalog.load(), ()), "x86_64", None)
    seconds = time.perf_counter() - began
    disconnect_all(state)
    if problem is not None:
        raise SystemExit(problem)
    # not getrusage, whose peak counts what the process that started this one had
    peak = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    print(json.dumps({"seconds": seconds, "peak_mib": int(peak[1]) / 1024 if peak else 0}))
