from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_no_changes
from e2e.pyinfra_run import Run
from e2e.scenario import Scenario

UNDO = "deploys/undo.py"
# lab hosts may not raise hard limits: less than the 8 MiB that they have can be had all the same
MEMLOCK = 4 << 20
WANTED = ("--data", f"gpu_memlock={MEMLOCK}")
CHECKS = ("memlock-of-logins", "memlock-of-units", "memlock-of-another-user", "memlock-in-container")
DAEMONS = """for unit in docker containerd; do
    sed -n 's/^Max locked memory *//p' "/proc/$(systemctl show -p MainPID --value $unit.service)/limits"
done"""


class Limits(Scenario):
    """memlock is set, and read where it counts: a login, a unit, daemons that run, a container; lines of others that win are named."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def converge(self) -> None:
        run = self.deploy("converge", "deploys/gpu_host.py", *WANTED).expect_exit(0).expect_proven(*self.hosts)
        for name in self.hosts:
            changed = run.result(name)["changed"]
            expect.equal(f"what was done on {name}", changed, ["memlock", "daemon-json", "provenance"], run.log)
            self._expect(run, name, dict.fromkeys(CHECKS, "pass"))
            found = self.host(name).run(DAEMONS, sudo=True).stdout.split()
            expect.equal(f"the limits of the daemons of {name}", found, [str(MEMLOCK), str(MEMLOCK), "bytes"] * 2)

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("idempotence", "deploys/gpu_host.py", *WANTED), self.hosts)

    @override
    def side_effect(self) -> None:
        one, two = self.lab.hosts
        run = None
        with self.case("a daemon that somebody started otherwise gets its limit back, without a restart"):
            pid = one.run("systemctl show -p MainPID --value docker", sudo=True).stdout
            one.run(
                f"prlimit --pid {pid.strip()} --memlock=65536:", sudo=True
            )  # the soft one: a lab host may not raise hard ones
            two.run("echo '* hard memlock 1024' >/etc/security/limits.d/99-site.conf", sudo=True)
            run = self.deploy("again", "deploys/gpu_host.py", *WANTED).expect_exit(0).expect_proven(*self.hosts)
            expect.equal("what was done on lab-1", run.result("lab-1")["changed"], ["memlock"], run.log)
            after = one.run("systemctl show -p MainPID --value docker", sudo=True).stdout
            expect.equal("the process of Docker's daemon", after, pid)
        with self.case("a line of somebody else's that wins stays, and is named"):
            expect.true(run, "a run of the case before", "none")
            assert run is not None
            self._expect(run, "lab-2", {"memlock-of-logins": "warn"})
            detail = next(each["detail"] for each in run.result("lab-2")["checks"] if each["name"] == "memlock-of-logins")
            expect.contains("the check", detail, "99-site.conf", "1048576")

    @override
    def verify(self) -> None:
        with self.case("undo takes the limits back"):
            self.deploy("undo", UNDO).expect_exit(0)
            for host in self.lab.hosts:
                left = host.run("find /etc/security /etc/systemd -name '90-gpu-bringup.conf'", sudo=True).stdout
                expect.nothing(f"limit of ours on {host.name}", left.split())
            expect.contains("the user's own", self.host("lab-2").run("cat /etc/security/limits.d/99-site.conf").stdout, "1024")

    def _expect(self, run: Run, name: str, wanted: dict[str, str]) -> None:
        found = {each["name"]: each["status"] for each in run.result(name)["checks"]}
        expect.equal(f"checks of {name}", {each: found.get(each) for each in wanted}, wanted, run.log)
