from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.lab import faults
from e2e.lab.host import Host
from e2e.pyinfra_run import LAB_INVENTORY
from e2e.scenario import GPU_HOST, PLAN, Scenario

OLDER = "580.159.04"
FABRIC = "nvidia-fabricmanager"


class DriverSet(Scenario):
    """A package set that is half-upgraded, a fabric manager of another version: made one at the driver's own, nothing loaded anew."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def prepare(self) -> None:
        """A library of lab-1, and the fabric manager of lab-2, at another version of the same branch."""
        one, two = self.lab.hosts
        self.driver = {host.name: self._version(host, "nvidia-kernel-open-dkms") for host in self.lab.hosts}
        self.boots = {host.name: host.boot_id() for host in self.lab.hosts}
        with self.case("a fabric manager runs where there are NVSwitches, and is not even installed where there are none"):
            expect.equal("the fabric manager of lab-1", self._version(one, FABRIC), "")
            expect.equal("the fabric manager of lab-2", self._version(two, FABRIC), self.driver["lab-2"])
            two.run(f"systemctl is-active {FABRIC}")
        self.unit = faults.edit_unit(one, "nvidia-persistenced.service")
        faults.install(one, OLDER, ("libcuda1",))
        faults.install(two, OLDER, (FABRIC,))

    @override
    def converge(self) -> None:
        run = expect_converged(self.deploy("half-upgraded"), self.hosts, reboots=0)
        for host, odd in zip(self.lab.hosts, ("libcuda1", FABRIC), strict=True):
            result = run.result(host.name)
            (why,) = (step["why"] for step in result["planned"] if step["step"] == "driver-packages")
            expect.contains(f"why driver-packages is planned for {host.name}", why, f"{odd} {OLDER}", self.driver[host.name])
            expect.true(
                "driver-loaded" not in result["changed"], f"no module of {host.name} loaded anew", result["changed"], run.log
            )
            expect.equal(f"the {odd} of {host.name}", self._version(host, odd), self.driver[host.name], run.log)
            expect.equal(f"the boot id of {host.name}", host.boot_id(), self.boots[host.name], run.log)
        self.host("lab-2").run(f"systemctl is-active {FABRIC}")
        plan = self.pyinfra("plan", "-v", LAB_INVENTORY, PLAN, timeout_s=60)
        expect.contains(
            "what is said of the unit that was edited", plan.output, f"{self.unit} is a package's file and was edited"
        )
        self.host("lab-1").run(f"grep -q uvm-persistence-mode {self.unit}.gpu-bringup-backup")

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("again"), self.hosts)

    @override
    def verify(self) -> None:
        with self.case(
            "a module of another version that no package brought, which modprobe prefers: refused by name, removed where accepted"
        ):
            two = self.host("lab-2")
            path = faults.module_in_the_way(two, OLDER)
            run = self.deploy("two modules", GPU_HOST, "--limit", "lab-2").expect_exit(1)
            result = run.expect_problem("lab-2", "refused", f"modprobe takes {path} ({OLDER})", "remove-runfile")
            expect.nothing("step done on lab-2", result["changed"], run.log)
            accept = {"gpu_accept": ["container-host", "remove-runfile"]}
            accepted = self.inventory("accepted", {"lab-2": accept})
            run = expect_converged(self.deploy("two modules accepted", inventory=accepted), ["lab-2"], reboots=0)
            expect.true("runfile-out" in run.result("lab-2")["changed"], "runfile-out on lab-2", run.result("lab-2"), run.log)
            two.run(f"[ ! -e {path} ]")
            expect_no_changes(self.deploy("two modules again", inventory=accepted), ["lab-2"])
        with self.case("under a GPU process the set is not made one: refused by name, the process goes on"):
            one = self.host("lab-1")
            faults.gpu_process(one)
            faults.install(one, OLDER, ("libcuda1",))
            run = self.deploy("in use", GPU_HOST, "--limit", "lab-1").expect_exit(1)
            result = run.expect_problem("lab-1", "refused", "GPU processes", "train-model", "drain")
            expect.nothing("step done on lab-1", result["changed"], run.log)
            one.run("pgrep -x train-model")

    @staticmethod
    def _version(host: Host, package: str) -> str:
        """Upstream's, empty where it is not installed."""
        found = host.run(f"dpkg-query -W -f '${{Version}}' {package}", check=False)
        return found.stdout.partition("-")[0] if found.returncode == 0 else ""
