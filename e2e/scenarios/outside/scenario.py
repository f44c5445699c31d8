from __future__ import annotations

import shutil

from typing_extensions import override

from e2e import expect
from e2e.pyinfra_run import CHECKOUT
from e2e.scenario import VERIFY, Scenario


class Outside(Scenario):
    """An inventory outside the checkout, with group data of its own, run from elsewhere with --chdir."""

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def verify(self) -> None:
        elsewhere = self.lab.hosts[0].folder.parent.parent / "outside"
        shutil.rmtree(elsewhere, ignore_errors=True)
        (elsewhere / "group_data").mkdir(parents=True)
        fleet = self.inventory("fleet", {"lab-1": {}, "lab-2": {}}).rename(elsewhere / "fleet.py")
        (elsewhere / "group_data" / "fleet.py").write_text("gpu_expected_count = 8\n")
        run = self.pyinfra("chdir", "-y", "--chdir", str(CHECKOUT), str(fleet), VERIFY, cwd=elsewhere, timeout_s=150)
        run.expect_exit(1)
        expect.equal("the hosts with a result", sorted(run.results), self.hosts, run.log)
        run.expect_proven("lab-2")
        run.expect_problem("lab-1", "refused", "gpu_expected_count is 8")
        run = self.pyinfra(
            "chdir plan", "-y", "--chdir", str(CHECKOUT), str(fleet), "deploys/plan.py", cwd=elsewhere, timeout_s=60
        )
        expect.contains("the plan", run.expect_exit(3).output, *self.hosts, where=run.log)
