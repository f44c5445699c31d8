from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.host_state import changes, host_state
from e2e.lab import faults
from e2e.scenario import Scenario

INSTALLED, LEFT = "575.57.08", "999.10.01"
"""The second one is newer than all that packages bring: ld.so would prefer it to theirs."""


class Runfile(Scenario):
    """What NVIDIA's .run installer left is refused, removed where that is accepted, and never comes back: converged with packages."""

    tier = "all"

    @override
    def prepare(self) -> None:
        """lab-1: libraries alone, whose uninstaller is gone. lab-2: a whole installation."""
        one, two = self.lab.hosts
        faults.runfile_libraries(one, LEFT)
        faults.runfile(two, INSTALLED)
        with self.case("refused by name, nothing changed"):
            before = {host.name: host_state(host) for host in self.lab.hosts}
            run = self.deploy("not accepted").expect_exit(1)
            run.expect_problem("lab-1", "refused", f"libcuda {LEFT}", "no package brought it", "remove-runfile")
            run.expect_problem("lab-2", "refused", f"driver {INSTALLED}", ".run file", "nvidia-uninstall", "remove-runfile")
            for host in self.lab.hosts:
                expect.nothing(f"step done on {host.name}", run.result(host.name)["changed"], run.log)
                expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)
        with self.case("an uninstaller that fails is named with its error, before packages come"):
            faults.uninstaller_fails(two, fails=True)
            run = self.deploy("uninstaller fails", "deploys/driver.py", "--limit", "lab-2", inventory=self._accepted).expect_exit(
                1
            )
            run.expect_problem("lab-2", "failed", "runfile-out", "has not removed the driver", "Unable to open the backup log")
            expect.true(
                "driver-packages" not in run.result("lab-2")["changed"], "no packages on lab-2", run.result("lab-2"), run.log
            )
            faults.uninstaller_fails(two, fails=False)

    @override
    def converge(self) -> None:
        run = expect_converged(self.deploy("accepted", inventory=self._accepted), self.hosts)
        for name in self.hosts:
            expect.true(
                "runfile-out" in run.result(name)["changed"], f"runfile-out done on {name}", run.result(name)["changed"], run.log
            )

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("again", inventory=self._accepted), self.hosts)

    @override
    def verify(self) -> None:
        with self.case("the acceptance taken back: there is nothing left to accept, and only the record of the settings changes"):
            run = expect_converged(self.deploy("not accepted any more"), self.hosts)
            for name in self.hosts:
                expect.equal(f"what changed {name}", run.result(name)["changed"], ["provenance"], run.log)
        for host, version in zip(self.lab.hosts, (LEFT, INSTALLED), strict=True):
            with self.case(f"nothing of {version} is left on {host.name}, and libcuda is the packages'"):
                found = host.run(f"ls /usr/bin/nvidia-uninstall {faults.LIBRARIES}/*.so.{version} 2>/dev/null || :").stdout
                expect.nothing(f"file of {version} on {host.name}", found.splitlines())
                owner = host.run(f"dpkg-query -S $(readlink -f {faults.LIBRARIES}/libcuda.so.1)").stdout
                expect.contains("the package that libcuda.so.1 is of", owner, "libcuda1")

    @property
    def _accepted(self) -> str:
        accept = ["container-host", "remove-runfile"]
        return str(self.inventory("accepted", {name: {"gpu_accept": accept} for name in self.hosts}))
