from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.pyinfra_run import LAB_INVENTORY, Started
from e2e.scenario import GPU_HOST, Scenario

LOCK = "/run/gpu-bringup.lock"


class TwoRuns(Scenario):
    """Two runs at once: one works, the other names who holds the lock; the lock of a killed run is taken over."""

    @override
    def converge(self) -> None:
        """The second run begins once the first holds the lock of lab-2."""
        first = self._holding("first")
        second = self.pyinfra("second", "-y", "--limit", "lab-2", LAB_INVENTORY, GPU_HOST, timeout_s=120).expect_exit(1)
        expect.true(first.is_running(), "the first run to go on meanwhile", "that it has ended", first.log)
        second.expect_problem("lab-2", "failed", "another run", LOCK, f"process {first.process.pid}")
        expect.nothing("operation that the second run did", second.result("lab-2")["changed"], second.log)
        done = first.wait(300).expect_exit(0)
        done.expect_proven("lab-2")
        self._expect_free()

    @override
    def side_effect(self) -> None:
        """A run is killed that holds the lock of both hosts."""
        self.lab = self.labs.fresh()
        killed = self._holding("killed", timeout_s=90)
        killed.kill()
        self.host("lab-2").run(f"[ -d {LOCK} ]", sudo=True)

    @override
    def verify(self) -> None:
        after = self.start("after the killed run", "-y", "--limit", "lab-2", LAB_INVENTORY, GPU_HOST).wait(300)
        after.expect_exit(0).expect_proven("lab-2")
        expect.contains("the run after a killed one", after.output, "stale lock", where=after.log)
        self._expect_free()

    def _holding(self, what: str, timeout_s: float = 60) -> Started:
        run = self.start(what, "-y", "--limit", "lab-2", LAB_INVENTORY, GPU_HOST)

        def holds() -> bool:
            expect.true(run.is_running(), f"the {what} run to take {LOCK}", "that it ended before", run.log)
            return self.host("lab-2").run(f"cat {LOCK}/owner", sudo=True, check=False).returncode == 0

        expect.wait_until(f"the {what} run to take {LOCK}", holds, timeout_s)
        return run

    def _expect_free(self) -> None:
        expect.nothing("lock left", self.host("lab-2").run(f"ls -d {LOCK}", sudo=True, check=False).stdout.splitlines())
