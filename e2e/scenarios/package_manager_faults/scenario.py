from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import MAY_BE_DONE_ALREADY, expect_converged, expect_no_changes
from e2e.lab import faults, repository_faults
from e2e.scenario import Scenario

HELD_S, LISTS_S = 60, 30


class PackageManagerFaults(Scenario):
    """Somebody else's apt holds a lock, or dpkg was killed half-way: waited for by name, healed, converged."""

    tier = "all"

    @override
    def prepare(self) -> None:
        """lab-1: another apt installs for a minute. lab-2: dpkg was killed, and an update holds lists/lock."""
        faults.hold_dpkg_lock(self.host("lab-1"), HELD_S)
        faults.interrupt_dpkg(self.host("lab-2"))
        audit = self.host("lab-2").run("dpkg --audit", sudo=True, check=False).stdout
        expect.contains("dpkg --audit before the run", audit, "slow-service")
        faults.hold_lists_lock(self.host("lab-2"), LISTS_S)

    @override
    def converge(self) -> None:
        run = expect_converged(self.deploy("locked and interrupted"), ["lab-2"]).expect_proven("lab-1")
        # the other apt's half-configured package looks like an interrupted dpkg for as long as it works
        expect.contains("the plan for lab-1", run.output, "this plan is provisional", where=run.log)
        steps = [step["step"] for step in run.result("lab-1")["planned"]]
        more = sorted(set(steps) - set(run.result("lab-1")["changed"]) - {"package-manager", *MAY_BE_DONE_ALREADY})
        expect.nothing("step of lab-1's plan that was not done", more, run.log)
        expect.nothing("step done on lab-1 and not planned", set(run.result("lab-1")["changed"]) - set(steps), run.log)
        expect.contains("what a person sees of the lock", run.output, "waiting: ", "holds /var/lib/dpkg/lock", where=run.log)
        expect.contains("what a person sees of the lock", run.output, "holds /var/lib/apt/lists/lock", where=run.log)
        expect.true("package-manager" in run.result("lab-2")["changed"], "dpkg healed on lab-2", run.result("lab-2")["changed"])
        for host in self.lab.hosts:
            state = host.run("dpkg-query -W -f '${db:Status-Abbrev}' slow-service").stdout.strip()
            expect.equal(f"the state of the package that {host.name}'s other apt installed", state, "ii", run.log)
            expect.equal(f"dpkg --audit on {host.name}", host.run("dpkg --audit", sudo=True).stdout, "", run.log)

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("again"), self.hosts)

    @override
    def destroy(self) -> None:
        repository_faults.heal(self.lab.network)
