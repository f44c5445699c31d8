"""Runs scenarios: phase after phase, each timed; what fails is said with its transcripts, and the others go on."""

from __future__ import annotations

import fcntl
import importlib
import inspect
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .expect import Failed
from .lab.errors import LabError
from .lab.network import this_network
from .lab.paths import CACHE, STATE
from .pyinfra_run import CHECKOUT
from .scenario import PHASES, Scenario
from .shared_lab import SharedLab

_SCENARIOS = Path(__file__).parent / "scenarios"
_FIRST = "default"  # its converged hosts are what most others begin with


def all_scenarios() -> dict[str, type[Scenario]]:
    """Every scenario by its name, in the order in which they run."""
    names = sorted((path.parent.name for path in _SCENARIOS.glob("*/scenario.py")), key=lambda name: (name != _FIRST, name))
    return {name.replace("_", "-"): _load(name) for name in names}


def _load(folder: str) -> type[Scenario]:
    module = importlib.import_module(f"e2e.scenarios.{folder}.scenario")
    found = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    return next(each for each in found if issubclass(each, Scenario))


def describe() -> str:
    """One line for each scenario: its name, its tier, what it shows."""
    found = all_scenarios()
    return "".join(f"{name:14}{each.tier:7}{(each.__doc__ or '').splitlines()[0]}\n" for name, each in found.items())


def chosen(names: Sequence[str], every: bool) -> dict[str, type[Scenario]]:
    """The scenarios of these names; without names those of the short tier, or all that need no GPU.

    LabError for a name that there is not.
    """
    found = all_scenarios()
    unknown = [each for each in names if each not in found]
    if unknown:
        raise LabError(f"there is no scenario {unknown[0]!r}: python -m e2e scenarios lists them ({', '.join(found)})")
    tiers = ("short", "all") if every else ("short",)
    return {name: each for name, each in found.items() if name in names or (not names and each.tier in tiers)}


def test(names: Sequence[str], *, every: bool = False, keep: bool = False) -> int:
    """Runs scenarios from create to destroy. 0: all that this machine can hold passed; in CI all that were asked for."""
    every_one = chosen(names, every)
    reasons = {name: each.impossible() for name, each in every_one.items()}
    for why in sorted({each for each in reasons.values() if each is not None}):
        print(f"e2e: skipped, since {why}")
    scenarios = {name: each for name, each in every_one.items() if reasons[name] is None}
    skipped = len(every_one) - len(scenarios)
    if not scenarios:
        print(f"0 passed, 0 failed, {skipped} skipped")
        return 1 if os.environ.get("CI") else 0
    passed, failed = 0, 0
    with _alone():
        folder = CHECKOUT / "reports" / "e2e" / time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        labs = SharedLab(folder)
        try:
            for name, scenario in scenarios.items():
                ok = _run(scenario(name, labs, folder / name), PHASES)
                passed, failed = passed + ok, failed + (not ok)
                if keep and not ok:
                    break
        finally:
            _end(labs, keep)
    print(f"{passed} passed, {failed} failed, {len(every_one) - passed - failed} skipped")
    return 1 if failed or (skipped and os.environ.get("CI")) else 0


def converge(name: str) -> int:
    """Makes the scenario's hosts and brings them to the state in which it begins to look; leaves them so."""
    scenario = chosen([name], False)[name]
    why = scenario.impossible()
    if why is not None:
        raise LabError(why)
    with _alone():
        folder = CHECKOUT / "reports" / "e2e" / time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        ok = _run(scenario(name, labs := SharedLab(folder), folder / name), PHASES[: PHASES.index("converge") + 1])
        _end(labs, keep=True)
    return 0 if ok else 1


def _run(scenario: Scenario, phases: Sequence[str]) -> bool:
    """Did the scenario pass? Its destroy phase runs in any case."""
    print(f"{scenario.name}: {(type(scenario).__doc__ or '').splitlines()[0]}", flush=True)
    began = time.monotonic()
    ok = True
    for phase in phases:
        written = phase == "create" or getattr(type(scenario), phase) is not getattr(Scenario, phase)
        if written and (ok or phase == "destroy"):
            ok = _phase(scenario, phase) and ok
    print(f"{scenario.name}: {'passed' if ok else 'FAILED'} after {time.monotonic() - began:.1f} s", flush=True)
    return ok


def _phase(scenario: Scenario, phase: str) -> bool:
    scenario.failures.clear()
    began = time.monotonic()
    problems: list[str] = []
    try:
        getattr(scenario, phase)()
    except (Failed, LabError) as problem:
        problems.append(_in_words(problem))
    except Exception:
        where = scenario.folder / f"{phase}.traceback"
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(traceback.format_exc())
        problems.append(f"the scenario itself is wrong: {traceback.format_exc(limit=-1).splitlines()[-1]} (see {where})")
    problems = [*scenario.failures, *problems]
    print(f"    {phase:12} {'failed' if problems else 'ok':7} {time.monotonic() - began:6.1f} s", flush=True)
    for each in problems:
        print(f"    {scenario.name}, {phase}: {each}", flush=True)
    if problems:
        print(f"        transcripts: {scenario.folder}", flush=True)
        _keep_consoles(scenario)
    return not problems


def _in_words(problem: Exception) -> str:
    if not isinstance(problem, Failed):
        return str(problem)
    see = f"\n        see      {problem.where}" if problem.where else ""
    return f"it failed\n        expected {problem.expected}\n        found    {problem.found}{see}"


def _keep_consoles(scenario: Scenario) -> None:
    """What the hosts printed at boot goes away with them."""
    for host in scenario.lab.hosts if hasattr(scenario, "lab") else []:
        if host.console.exists():
            scenario.folder.mkdir(parents=True, exist_ok=True)
            (scenario.folder / f"{host.name}.console").write_bytes(host.console.read_bytes())


def _end(labs: SharedLab, keep: bool) -> None:
    if not labs.is_up:
        return
    if keep:
        print(f"the hosts stay: GPU_BRINGUP_LAB={STATE} python -m e2e login lab-1, and `down` the same way", flush=True)
        return
    began = time.monotonic()
    labs.down()
    print(f"lab: down after {time.monotonic() - began:.1f} s", flush=True)


@contextmanager
def _alone() -> Iterator[None]:
    """One run of scenarios at a time on a network: the hosts are shared, and a next run would take them away."""
    CACHE.mkdir(parents=True, exist_ok=True)
    number = this_network().number
    with (CACHE / f"scenarios-{number}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(
                f"other scenarios run on network {number}: wait for them, or set GPU_BRINGUP_LAB and GPU_BRINGUP_LAB_NET"
            ) from None
        yield
