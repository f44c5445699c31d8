from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes
from e2e.host_state import changes, host_state
from e2e.lab import faults
from e2e.pyinfra_run import Run
from e2e.scenario import Scenario

OLDER, NEWER = "580.159.04", "580.178.04"
ACCEPT = ["container-host", "below-security-floor", "end-of-life"]  # that of the older version; branch 570
USER_SPACE = ("libcuda1", "libnvidia-ml1", "nvidia-driver-cuda", "nvidia-persistenced", "nvidia-kernel-open-dkms")


class DriverBranches(Scenario):
    """A proven host gets another driver branch, and its old one back; an exact version; never under a GPU process."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def converge(self) -> None:
        """580 -> 570 -> 580 -> 620 -> 580, each without a reboot: nothing but our own daemons uses the modules."""
        with self.case(
            "branch 570 on Debian 12; NVIDIA's repository for Debian 13 has none, which is said before anything is done"
        ):
            run = self._change_to("570").expect_exit(1).expect_proven("lab-1")
            self._expect_driver("lab-1", "570")
            run.expect_problem("lab-2", "refused", "Debian 13", "has no branch 570", "580")
            expect.nothing("step done on lab-2", run.result("lab-2")["changed"], run.log)
            expect_converged(self._change_to("580", "from 570"), self.hosts, reboots=0)
            self._expect_driver("lab-1", "580")
        for branch in ("620", "580"):
            run = self._change_to(branch)
            expect_converged(run, self.hosts, reboots=0)
            for name in self.hosts:
                expect.true(
                    {"driver-packages", "driver-loaded", "package-holds"} <= set(run.result(name)["changed"]),
                    f"the driver of {name} changed, loaded and held",
                    run.result(name)["changed"],
                    run.log,
                )
                self._expect_driver(name, branch)
            expect_no_changes(self._change_to(branch, "again"), self.hosts)

    @override
    def verify(self) -> None:
        with self.case(f"an exact version, older than what is there: {OLDER}"):
            expect_converged(self._change_to(OLDER), self.hosts, reboots=0)
            for name in self.hosts:
                self._expect_driver(name, OLDER)
            expect_no_changes(self._change_to(OLDER, "again"), self.hosts)
        with self.case(
            f"user space {NEWER} beside the loaded {OLDER}: named while a process computes, then loaded anew without a reboot"
        ):
            self._newer_user_space()
        self.lab = self.labs.converged()
        with self.case("another branch while a process computes: refused by name, nothing changed"):
            self._refused_in_use()

    def _newer_user_space(self) -> None:
        boots = {host.name: host.boot_id() for host in self.lab.hosts}
        for host in self.lab.hosts:
            faults.gpu_process(host)
            fabric = ("nvidia-fabricmanager",) if host.name == "lab-2" else ()
            faults.install(host, NEWER, (*USER_SPACE, *fabric))
        run = self._change_to("580", "split in use").expect_exit(1)
        for host in self.lab.hosts:
            run.expect_problem(host.name, "failed", "reboot-pending", OLDER, NEWER)
            expect.contains("what a person sees", run.output, "train-model", where=run.log)
            host.run("pgrep -x train-model")
            faults.end_gpu_process(host)
        done = expect_converged(self._change_to("580", "split"), self.hosts, reboots=0)
        for host in self.lab.hosts:
            steps = done.result(host.name)["changed"]
            expect.true("driver-loaded" in steps, f"driver-loaded done on {host.name}", steps, done.log)
            self._expect_driver(host.name, NEWER)
            expect.equal(f"the boot id of {host.name}", host.boot_id(), boots[host.name], done.log)

    def _with(self, branch: str) -> str:
        return str(
            self.inventory(f"branch {branch}", {name: {"gpu_driver_branch": branch, "gpu_accept": ACCEPT} for name in self.hosts})
        )

    def _change_to(self, branch: str, how: str = "") -> Run:
        return self.deploy(f"to {branch} {how}".strip(), inventory=self._with(branch))

    def _expect_driver(self, name: str, version: str) -> None:
        """Loaded and installed are one version of this branch, and every package of it is held."""
        host = self.host(name)
        loaded = host.run("cat /proc/driver/nvidia/version", sudo=True).stdout
        expect.contains(f"the loaded driver of {name}", loaded, f"  {version}")
        lines = host.run("dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\\n' | grep -E 'nvidia|libcuda'").stdout
        found = [line.split() for line in lines.splitlines()]
        drivers = [package for package in found if package[1][:3] in {"570", "580", "620"}]
        expect.nothing(
            f"package of {name} that is not of {version}", (" ".join(p) for p in drivers if not p[1].startswith(version))
        )
        free = [" ".join(each) for each in drivers if each[2] != "hi"]
        expect.nothing(f"package of {name} that is not held", free)
        expect.true(len(drivers) >= len(USER_SPACE), f"{', '.join(USER_SPACE)} on {name}", lines)

    def _refused_in_use(self) -> None:
        for host in self.lab.hosts:
            faults.gpu_process(host)
        before = {host.name: host_state(host) for host in self.lab.hosts}
        run = self._change_to("620", "in use").expect_exit(1)
        for host in self.lab.hosts:
            result = run.expect_problem(host.name, "refused", "GPU processes", "train-model", "drain")
            expect.nothing(f"step done on {host.name}", result["changed"], run.log)
            expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)
            host.run("pgrep -x train-model")
