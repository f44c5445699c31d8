"""What holds of every run that converges: it did what it had planned and shown, and a second one has nothing left to do."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from . import expect
from .pyinfra_run import Run

# what the packages do themselves, at their installation or at the reboot; a plan cannot know
MAY_BE_DONE_ALREADY = ("kernel-modules", "driver-services", "cdi-spec")
# a package that comes again may be of the version that the provenance has already
ONLY_THE_INDEX_KNOWS = "(versions: from the repository's index)"


# as the beginning of a run, --dry and plan.py -v print each step
_STEP = re.compile(r"(?:\[(?P<host>[^]]+)\] )?(?!note:)(?P<step>[a-z-]+)(?: \(reboots\))?: .+, because .+")


def expect_converged(run: Run, hosts: Iterable[str], reboots: int | None = None) -> Run:
    """Exit 0, every host proven, and what changed each is what was planned for it; reboots: how often each, None for any number."""
    run.expect_exit(0)
    for name in hosts:
        run.expect_proven(name)
        expect_as_planned(run, name)
        if reboots is not None:
            expect.equal(f"reboots of {name}", run.result(name)["reboots"], reboots, run.log)
    return run


def expect_as_planned(run: Run, name: str) -> None:
    """The run printed its plan, executed it step by step in that order, and noted both in the result."""
    result = run.result(name)
    planned = [step["step"] for step in result["planned"]]
    expect.equal(
        f"the steps that were printed for {name} before the run, compared with its plan", shown(run)[name], planned, run.log
    )
    open_ = {step["step"] for step in result["planned"] if "differs in" in step["why"] and ONLY_THE_INDEX_KNOWS in step["why"]}
    done = [step for step in planned if step in result["changed"] or step not in {*MAY_BE_DONE_ALREADY, *open_}]
    expect.equal(f"the steps that changed {name}, compared with its plan", result["changed"], done, run.log)


def shown(run: Run) -> dict[str, list[str]]:
    """The steps that a run, --dry or plan.py -v printed, by host. plan.py's table has them below the host's row."""
    found: dict[str, list[str]] = defaultdict(list)
    row = ""
    for line in run.output.splitlines():
        step = _STEP.fullmatch(line.strip())
        if step:
            found[step["host"] or row].append(step["step"])
        elif line[:1].strip():
            row = line.split()[0]
    return found


def expect_no_changes(run: Run, hosts: Iterable[str]) -> Run:
    """A second run: proven, and nothing planned or done."""
    run.expect_exit(0)
    for name in hosts:
        result = run.expect_proven(name).result(name)
        expect.nothing(f"step planned for a converged {name}", (step["step"] for step in result["planned"]), run.log)
        expect.nothing(f"operation that changed {name} again", result["changed"], run.log)
    return run
