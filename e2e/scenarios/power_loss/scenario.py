from __future__ import annotations

import time

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged
from e2e.pyinfra_run import LAB_INVENTORY, Run, Started
from e2e.scenario import GPU_HOST, Scenario
from e2e.shared_lab import wait_for_boot

NOTICED_S = 90
"""So many seconds after a host has lost its power the run has ended: keepalives notice it, not the time limits of operations."""


class PowerLoss(Scenario):
    """A host that loses power in the middle is a failed host with a report, the other is proven; the next run heals it."""

    lost: Run

    @override
    def converge(self) -> None:
        """lab-2's power is cut while dpkg unpacks Docker."""
        run = self.start("power loss", "-y", LAB_INVENTORY, GPU_HOST)
        self._cut_power_when("[ -e /usr/sbin/dockerd.dpkg-new ] || [ -e /usr/sbin/dockerd ]", run)
        self.lost = run.wait(300)
        self.lost.expect_exit(1).expect_proven("lab-1")
        self._expect_failed("lab-2", self.lost)

    @override
    def side_effect(self) -> None:
        self.host("lab-2").power_on()
        wait_for_boot(self.host("lab-2"))

    @override
    def verify(self) -> None:
        with self.case("the command again: both hosts proven"):
            again = expect_converged(self.deploy("again"), self.hosts)
            expect.nothing("change on lab-1, which was proven", again.result("lab-1")["changed"], again.log)
        with self.case("the only host of a run fails and gets its report"):
            self.lab = self.labs.fresh()
            run = self.start("alone", "-y", "--limit", "lab-2", LAB_INVENTORY, GPU_HOST)
            self._cut_power_when("[ -e /usr/bin/nvidia-smi.dpkg-new ] || [ -e /usr/bin/nvidia-smi ]", run)
            cut = time.monotonic()
            done = run.wait(300).expect_exit(1)
            took = time.monotonic() - cut
            expect.true(took < NOTICED_S, f"the run to end within {NOTICED_S} s", f"{took:.0f} s", done.log)
            self._expect_failed("lab-2", done)
            expect.equal("the hosts with a result", sorted(done.results), ["lab-2"], done.log)

    def _cut_power_when(self, condition: str, run: Started) -> None:
        host = self.host("lab-2")

        def holds() -> bool:
            expect.true(
                run.is_running(), f"the run to come to where `{condition}` holds on {host.name}", "that it ended before", run.log
            )
            return host.run(condition, check=False, timeout_s=20).returncode == 0

        expect.wait_until(f"`{condition}` to hold on {host.name}", holds, 200, interval_s=0.1)
        host.power_off()

    def _expect_failed(self, name: str, run: Run) -> None:
        result = run.result(name)
        expect.equal(f"how the run ended for {name}", result["ended"], "failed", run.log)
        expect.true(result["problems"], f"a sentence on what failed on {name}", "none", run.log)
        expect.true(result["function"] != "proven", f"{name} not to be proven", result["function"], run.log)
        expect.contains("the summary", run.output, f"{name}: failed", where=run.log)
