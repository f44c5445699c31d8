"""How long Docker is away when daemon.json changes, beside its bare restart, and what a converged host costs; on a lab host."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator

from benchmarks.driver import stage
from benchmarks.measured import Measured
from e2e import own_lab
from e2e.lab.host import Host

STAGE = "deploys/container_runtime.py"
TIMES, QUICK_TIMES = 5, 2
# from the moment that systemd begins to stop it, to the one at which dockerd says that it is ready; µs of the host's clock
STAMPS = "systemctl show -p ActiveExitTimestampMonotonic -p ActiveEnterTimestampMonotonic --value docker.service"


def docker(quick: bool) -> Iterator[Measured]:
    """The issue's targets: away no longer than by a bare restart, not restarted where a reload is enough, 3 exchanges when converged."""
    own_lab.choose(["", "test"])  # a lab that is up is not ours to end
    from e2e.lab import machine
    from e2e.lab.lab import Lab

    why = machine.impossible()
    if why is not None:
        print(f"docker: left out, since this machine cannot hold the lab: {why}", file=sys.stderr)
        return
    times = QUICK_TIMES if quick else TIMES
    Lab.down()
    lab = Lab.up(1, "debian13", "h200")
    host = lab.host("lab-1")
    try:
        stage(host.name, {}, STAGE)
        bare = []
        for _ in range(times):
            host.run("systemctl reset-failed docker; systemctl restart docker", sudo=True, timeout_s=120)
            bare.append(_away_s(host))
        yield Measured("docker: away by a bare restart", statistics.median(bare), "s")
        ours = []
        for number in range(times):
            stage(host.name, {"gpu_docker_options": {"log-opts": {"max-file": str(number + 2)}}}, STAGE)
            ours.append(_away_s(host))
        yield Measured("docker: away when daemon.json changes", statistics.median(ours), "s", max(bare))
        options = {"log-opts": {"max-file": str(times + 1)}, "insecure-registries": ["10.1.2.3:5000"]}
        before = _stamps(host)
        stage(host.name, {"gpu_docker_options": options}, STAGE)
        yield Measured("docker: restarts where a reload is enough", float(_stamps(host) != before), "", 0)
        again = stage(host.name, {"gpu_docker_options": options}, STAGE)
        yield Measured("docker: exchanges with a converged host", again.exchanges, "", 3)
        yield Measured("docker: the stage on a converged host", again.wall_s, "s")
    finally:
        Lab.down()


def _stamps(host: Host) -> list[int]:
    return sorted(int(each) for each in host.run(STAMPS).stdout.split())


def _away_s(host: Host) -> float:
    left, back = _stamps(host)
    return (back - left) / 1e6
