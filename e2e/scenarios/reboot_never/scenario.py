from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.scenario import Scenario


class RebootNever(Scenario):
    """gpu_reboot=never where nouveau holds the GPU: the other stages are done, the host ends not proven; with the default it is."""

    tier = "all"

    @override
    def converge(self) -> None:
        host = self.host("lab-1")
        before = host.boot_id()
        run = self.deploy("never", inventory=self.inventory("never", {"lab-1": {"gpu_reboot": "never"}})).expect_exit(1)
        result = run.expect_problem("lab-1", "failed", "reboot-pending", "nouveau")
        expect.equal("the boot id of lab-1", host.boot_id(), before, run.log)
        expect.equal("reboots of lab-1", result["reboots"], 0, run.log)
        done = ("driver-packages", "docker-engine", "toolkit-packages", "daemon-json", "images", "provenance")
        expect.true(set(done) <= set(result["changed"]), f"{', '.join(done)} done on lab-1", result["changed"], run.log)

    @override
    def verify(self) -> None:
        run = self.deploy("default", inventory=self.inventory("default", {"lab-1": {}})).expect_exit(0).expect_proven("lab-1")
        expect.equal("reboots of lab-1", run.result("lab-1")["reboots"], 1, run.log)
