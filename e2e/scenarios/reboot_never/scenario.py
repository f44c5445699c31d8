from __future__ import annotations

from dataclasses import replace

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged
from e2e.lab.gpu import PROFILES
from e2e.scenario import Scenario
from e2e.shared_lab import change_gpu

DONE = ("driver-packages", "docker-engine", "toolkit-packages", "daemon-json", "images", "provenance")


class RebootNever(Scenario):
    """gpu_reboot=never where nouveau holds the GPU: the other stages are done, the host ends not proven; with the default it is."""

    tier = "all"

    @override
    def prepare(self) -> None:
        """nouveau has the GPUs of lab-2 too."""
        change_gpu(self.host("lab-2"), replace(PROFILES["h200x8"], nouveau=True))

    @override
    def converge(self) -> None:
        before = {host.name: host.boot_id() for host in self.lab.hosts}
        never = self.inventory("never", {name: {"gpu_reboot": "never"} for name in self.hosts})
        run = self.deploy("never", inventory=never).expect_exit(1)
        for host in self.lab.hosts:
            result = run.expect_problem(host.name, "failed", "reboot-pending", "nouveau")
            expect.equal(f"the boot id of {host.name}", host.boot_id(), before[host.name], run.log)
            expect.equal(f"reboots of {host.name}", result["reboots"], 0, run.log)
            expect.true(set(DONE) <= set(result["changed"]), f"{', '.join(DONE)} done on {host.name}", result["changed"], run.log)

    @override
    def verify(self) -> None:
        expect_converged(self.deploy("default"), self.hosts, reboots=1)

    @override
    def destroy(self) -> None:
        change_gpu(self.host("lab-2"), PROFILES["h200x8"])
