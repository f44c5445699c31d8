"""What the driver stage costs beside the package manager and DKMS, on two lab hosts: a driver that is really built, and stand-ins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measured import Measured
from e2e import own_lab

CHECKOUT = Path(__file__).parents[1]
STAGE_TIMEOUT_S = 1500
KERNEL = "apt-get -q update && apt-get -q -y install --no-install-recommends linux-image-cloud-amd64 linux-headers-cloud-amd64"
# Debian 12's own driver for the lab's T4, built for the kernel that is booted next; not loaded, since another kernel runs
REAL = {"gpu_driver_source": "distro", "gpu_driver_branch": "535", "gpu_accept": ["container-host", "end-of-life"]}


@dataclass(frozen=True)
class Ran:
    """One run of the stage: wall seconds of the whole command, seconds in apt and DKMS, and how often the host was asked for something."""

    wall_s: float
    packages_s: float
    exchanges: int

    @property
    def beside_s(self) -> float:
        return self.wall_s - self.packages_s

    @property
    def share(self) -> float:
        return self.beside_s / self.wall_s


def driver(quick: bool) -> Iterator[Measured]:
    """The issue's targets: under 10 % of the stage is not apt or DKMS, and a converged host costs at most 3 exchanges.

    lab-1, whose exchanges are counted, has a sudo that does not ask: pyinfra's handling of a password is two more, once a run.
    """
    own_lab.choose(["", "test"])  # a lab that is up is not ours to end
    from e2e.lab import machine
    from e2e.lab.lab import Lab

    why = machine.impossible()
    if why is not None:
        print(f"driver: left out, since this machine cannot hold the lab: {why}", file=sys.stderr)
        return
    Lab.down()
    lab = Lab.up(1 if quick else 2, "debian12", "t4")
    try:
        if not quick:
            lab.host("lab-2").run(f"export DEBIAN_FRONTEND=noninteractive; {KERNEL}", sudo=True, timeout_s=300)
            real = stage("lab-2", REAL)
            yield Measured("driver: the stage with a real driver (Debian 12, DKMS)", real.wall_s, "s")
            yield Measured("driver: of it beside apt and DKMS", real.beside_s, "s")
            yield Measured("driver: share of what is not apt or DKMS", real.share, "", 0.1)
        first = stage("lab-1", {})
        yield Measured("driver: the stage with stand-ins, modules loaded", first.wall_s, "s")
        yield Measured("driver: of it beside apt", first.beside_s, "s")
        again = stage("lab-1", {})
        yield Measured("driver: the stage on a converged host", again.wall_s, "s")
        yield Measured("driver: exchanges with a converged host", again.exchanges, "", 3)
    finally:
        Lab.down()


def stage(host: str, more: Mapping[str, Any], deploy: str = "deploys/driver.py") -> Ran:
    """Run a stage on one lab host, with these further data."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inventory, record = folder / "inventory.py", folder / "record"
        inventory.write_text(
            f"import runpy\n_hosts, _data = runpy.run_path({str(CHECKOUT / 'inventories' / 'lab.py')!r})['lab']\n"
            f"lab = ([(name, {{**own, **{dict(more)!r}}}) for name, own in _hosts if name == {host!r}], _data)\n"
        )
        command = [sys.executable, "-m", "benchmarks.recorded", str(record), "-y", "--data", f"gpu_reports={folder / 'reports'}"]
        began = time.perf_counter()
        done = subprocess.run(
            [*command, str(inventory), deploy],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=STAGE_TIMEOUT_S,
            env={**os.environ, "PYINFRA_PROGRESS": "off"},
        )
        wall_s = time.perf_counter() - began
        steps = json.loads(next((folder / "reports" / "latest").glob("*.json")).read_text())
        # the real driver cannot be loaded, which is the stage's last word
        if done.returncode and not (more and steps["problems"] and steps["problems"][0].startswith("driver-runs")):
            raise RuntimeError(f"the stage failed on {host}: {'; '.join(steps['problems']) or done.stderr[-500:]}")
        sent = [json.loads(line) for line in record.read_text().splitlines()]
    return Ran(wall_s, sum(each["seconds"] for each in sent if each["kind"] == "packages"), len(sent))
