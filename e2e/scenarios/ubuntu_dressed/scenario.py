from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.host_state import changes, host_state
from e2e.lab.host import Host
from e2e.scenario import Scenario


class UbuntuDressed(Scenario):
    """Hosts dressed as Ubuntu 24.04 (Debian's user land, NVIDIA's ubuntu2404 layout): fresh to proven, no changes, another branch."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.dressed("ubuntu2404")

    @override
    def converge(self) -> None:
        """nouveau holds the GPU of lab-1 alone: one reboot there."""
        run = expect_converged(self.deploy("converge"), self.hosts)
        reboots = {name: run.result(name)["reboots"] for name in self.hosts}
        expect.equal("reboots", reboots, {"lab-1": 1, "lab-2": 0}, run.log)
        for host in self.lab.hosts:
            self._expect_driver(host, "580")

    @override
    def idempotence(self) -> None:
        before = {host.name: host_state(host) for host in self.lab.hosts}
        run = expect_no_changes(self.deploy("idempotence"), self.hosts)
        for host in self.lab.hosts:
            expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)

    @override
    def verify(self) -> None:
        """Ubuntu has the branch in the names of its packages, so that another branch is other packages."""
        for branch in ("620", "580"):
            with self.case(f"to branch {branch}: the packages of the other one are gone"):
                more = {name: {"gpu_driver_branch": branch} for name in self.hosts}
                inventory = self.inventory(f"branch {branch}", more)
                expect_converged(self.deploy(f"to {branch}", inventory=inventory), self.hosts, reboots=0)
                for host in self.lab.hosts:
                    self._expect_driver(host, branch)
                expect_no_changes(self.deploy(f"to {branch} again", inventory=inventory), self.hosts)

    def _expect_driver(self, host: Host, branch: str) -> None:
        """Loaded and installed are one branch, and every package of it is held."""
        loaded = host.run("cat /proc/driver/nvidia/version", sudo=True).stdout
        expect.contains(f"the loaded driver of {host.name}", loaded, f"  {branch}.")
        lines = host.run(
            "dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\\n' | grep -E '^.i.*(nvidia|libcuda)'"
        ).stdout
        found = [line.split() for line in lines.splitlines() if "container" not in line]
        expect.true(len(found) >= 4, f"packages of the driver on {host.name}", lines)
        wrong = [" ".join(each) for each in found if not each[2].startswith(f"{branch}.") or each[0] != "hi"]
        expect.nothing(f"package of {host.name} that is not of {branch}, or not held", wrong)
