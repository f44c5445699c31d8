from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from e2e import expect
from e2e.lab import end_points
from e2e.lab.end_points import Fault
from e2e.pyinfra_run import CHECKOUT, LAB_INVENTORY, Run
from e2e.scenario import Scenario

HOSTS = 100
# spread, since pyinfra begins with the first
FAULTS: dict[int, Fault] = {
    **dict.fromkeys((1, 17, 18, 40, 63, 77, 100), "down"),
    **dict.fromkeys((5, 50, 95), "hangs"),
    **dict.fromkeys((30, 66), "breaks"),
}
ENDED = {"down": "unreachable", "hangs": "failed", "breaks": "failed"}
WORDS = {"down": "port", "hangs": "did not answer", "breaks": "connection"}
RUN_S = 420  # on two cores, which are also the hundred hosts'
# a hundred proofs at a time would be a test of this machine
NO_PROOF = ("--data", "gpu_verify=off")


class PartialFailures(Scenario):
    """Of 100 hosts 7 are down, 3 hang after login and 2 fail half-way: the others finish, the 12 are named, and run again alone."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()
        self.end_points = self.folder / "nodes.py"

    @override
    def converge(self) -> None:
        # what is noted of the settings; from then on there is nothing to change
        self.deploy("settings", "deploys/gpu_host.py", "--limit", "lab-1", *NO_PROOF).expect_exit(0)
        end_points.serve(self.host("lab-1"), HOSTS, FAULTS)
        inventory = self._inventory()
        self.run = self.deploy("hundred", "deploys/gpu_host.py", *NO_PROOF, inventory=inventory, timeout_s=RUN_S).expect_exit(1)
        names = {end_points.name(each): FAULTS.get(each) for each in range(1, HOSTS + 1)}
        expect.equal("the hosts with a result", sorted(self.run.results), sorted(names), self.run.log)
        self._expect_done(self.run, [each for each, fault in names.items() if fault is None])
        table = self.run.output.partition(f"not in order: {len(FAULTS)} hosts")[2].splitlines()
        expect.true(table, f"a table of {len(FAULTS)} hosts that are not in order", "none", self.run.log)
        for each, fault in names.items():
            line = next((line for line in table if line.split()[:1] == [each]), None)
            expect.true((line is None) == (fault is None), f"{each} in the table: {fault is not None}", str(line), self.run.log)
            if fault is not None:
                self.run.expect_problem(each, ENDED[fault], WORDS[fault])
                expect.contains(f"what the table says of {each}", str(line), WORDS[fault], where=self.run.log)

    @override
    def side_effect(self) -> None:
        """They are mended, and run again by themselves."""
        end_points.serve(self.host("lab-1"), HOSTS)
        arguments = shlex.split((self.run.reports / "latest" / "failed.args").read_text())
        again = self.deploy(
            "the twelve", "deploys/gpu_host.py", *NO_PROOF, *arguments, inventory=self._inventory(), timeout_s=RUN_S
        )
        again.expect_exit(0)
        names = sorted(end_points.name(each) for each in FAULTS)
        expect.equal("the hosts of the second run", sorted(again.results), names, again.log)
        self._expect_done(again, names)

    def _expect_done(self, run: Run, names: Sequence[str]) -> None:
        for each in names:
            result = run.result(each)
            found = (result["ended"], result["changed"], result["problems"])
            expect.equal(f"how the run ended for {each}", found, ("done", [], []), run.log)

    def _inventory(self) -> Path:
        lab = CHECKOUT / LAB_INVENTORY
        return end_points.write_inventory(self.end_points, lab, self.host("lab-1"), range(1, HOSTS + 1))
