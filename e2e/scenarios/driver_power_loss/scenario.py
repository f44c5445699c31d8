from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.pyinfra_run import LAB_INVENTORY
from e2e.scenario import GPU_HOST, Scenario
from e2e.shared_lab import wait_for_boot

UNPACKING = "[ -e /usr/bin/nvidia-smi.dpkg-new ] || [ -e /usr/bin/nvidia-smi ]"


class DriverPowerLoss(Scenario):
    """A host that loses power while the driver is unpacked: failed by name, and the same command finishes it once it is on again."""

    tier = "all"

    @override
    def prepare(self) -> None:
        two = self.host("lab-2")
        run = self.start("power loss", "-y", LAB_INVENTORY, GPU_HOST)

        def unpacking() -> bool:
            expect.true(run.is_running(), "the run to come to the driver's packages", "that it ended before", run.log)
            return two.run(UNPACKING, check=False, timeout_s=20).returncode == 0

        expect.wait_until("the driver's packages to be unpacked on lab-2", unpacking, 200, interval_s=0.1)
        two.power_off()
        done = run.wait(300).expect_exit(1).expect_proven("lab-1")
        result = done.result("lab-2")
        expect.equal("how the run ended for lab-2", result["ended"], "failed", done.log)
        expect.contains("what is said of lab-2", " | ".join(result["problems"]), "the connection to the host was lost")
        two.power_on()
        wait_for_boot(two)

    @override
    def converge(self) -> None:
        expect_converged(self.deploy("again"), self.hosts)

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("and again"), self.hosts)
