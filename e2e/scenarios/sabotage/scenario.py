from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_as_planned
from e2e.host_state import changes, host_state
from e2e.pyinfra_run import Run
from e2e.scenario import VERIFY, Scenario
from e2e.scenarios.sabotage.breakages import LAB_1, LAB_2, Breakage


class Sabotage(Scenario):
    """What is broken behind a proven host's back: verify names it and changes nothing, gpu_host.py heals it."""

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def verify(self) -> None:
        """In rounds, one breakage on each host; the next round begins with the hosts as this one has healed them."""
        clean = True
        for pair in zip(LAB_1, LAB_2, strict=True):
            if not clean:
                self.lab = self.labs.converged()
            known = len(self.failures)
            self._round(pair)
            clean = len(self.failures) == known

    def _round(self, pair: tuple[Breakage, ...]) -> None:
        title = " + ".join(each.title for each in pair)
        with self.case(f"broken: {title}"):
            for each in pair:
                self.host(each.host).run(each.command, sudo=True)
            before = {each.host: host_state(self.host(each.host)) for each in pair}
            run = self.deploy(f"verify {pair[0].title}", VERIFY, timeout_s=150)
            run.expect_exit(1 if any(each.words for each in pair) else 0)
            for each in pair:
                self._expect_named(each, run)
                found = changes(before[each.host], host_state(self.host(each.host)))
                expect.nothing(f"change on {each.host} by verify", found, run.log)
        with self.case(f"healed: {title}"):
            run = self.deploy(f"heal {pair[0].title}").expect_exit(0).expect_proven(*self.hosts)
            for each in pair:
                changed = run.result(each.host)["changed"]
                expect.true(set(each.steps) <= set(changed), f"{each.host} healed by {', '.join(each.steps)}", changed, run.log)
                self.host(each.host).run(each.check, sudo=True)
                expect_as_planned(run, each.host)

    def _expect_named(self, breakage: Breakage, run: Run) -> None:
        if not breakage.words:
            run.expect_proven(breakage.host)
            return
        result = run.result(breakage.host)
        problems = " | ".join(result["problems"])
        expect.equal(f"the function of {breakage.host} after: {breakage.title}", result["function"], "not proven", run.log)
        expect.contains(f"what verify says after: {breakage.title}", problems, *breakage.words, where=run.log)
        expect.contains("what a person sees", run.output, "not proven", *breakage.words, where=run.log)
        expect.nothing("operation that verify executed", result["changed"], run.log)
