"""What holds for every plan, whatever the host, its GPUs, the settings, the day, and how far an earlier run came."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bringup import catalog
from bringup.plan import STEPS, Plan, Refusal, make_plan
from bringup.policy.gpus import candidates_of
from bringup.report.plans import as_json, plan_lines
from bringup.report.text import describe_host
from bringup.settings import read_settings
from bringup.steps.packages import PREDICTED
from bringup.survey import Survey, gpus
from bringup.survey.saved import mismatch
from bringup.versions import key
from tests.generated import applied, days, places, samples_of, settings, surveys, with_holes
from tests.machines import machine, with_docker, with_driver
from tests.surveys import BASES, SETTINGS, TODAY, Host

CATALOG = catalog.load()
PHASES = (Phase.explicit, Phase.generate, Phase.shrink)  # without `explain`, which traces every line
READY = {name: json.dumps(make().survey) for name, make in BASES.items()}


@hypothesis_settings(max_examples=300, phases=PHASES)
@given(surveys(), settings(), days)
def test_no_gpu_of_the_host_is_left_without_its_driver(survey: Survey, chosen: dict[str, object], today: date) -> None:
    plan = make_plan(survey, read_settings(chosen), CATALOG, today)
    if isinstance(plan, Refusal) or plan.target.driver is None or plan.target.driver.source == "preinstalled":
        return
    driver = plan.target.driver
    branch = CATALOG.branch(int(driver.wanted.split(".")[0]))
    assert branch is not None
    for device in gpus(survey):
        for board in candidates_of(device, CATALOG):
            assert board.max_branch is None or branch.number <= board.max_branch
            assert board.min_driver is None or key(board.min_driver) <= key(branch.newest)
            assert board.kernel_module in ("open-or-proprietary", f"{driver.kind}-only")
    assert (driver.kind == "open" and branch.number >= 515) or (driver.kind == "proprietary" and branch.number < 615)
    assert branch.is_supported(today) is not False or "end-of-life" in str(chosen["gpu_accept"])
    for name in plan.target.images:
        image = CATALOG.image(name)
        assert image is None or int(image.cuda.split(".")[0]) <= int(branch.cuda.split(".")[0])
    if driver.stream:
        assert f":{branch.number}-" in driver.stream


@hypothesis_settings(max_examples=300, phases=PHASES)
@given(surveys(), settings(), days, st.integers(0, len(STEPS)))
def test_a_run_that_broke_anywhere_is_finished_by_the_next_and_then_nothing_is_left(
    survey: Survey, chosen: dict[str, object], today: date, came: int
) -> None:
    plan = make_plan(survey, read_settings(chosen), CATALOG, today)
    if isinstance(plan, Refusal):
        return
    before = copy.deepcopy(survey)
    half = applied(survey, plan.target, came)
    whole = applied(half, plan.target)
    again = {name: found for name, function in STEPS if (found := function(whole, plan.target)) and hasattr(found, "after")}
    assert {name: found.why for name, found in again.items()} == {}
    assert survey == before, "a step wrote into the survey that it was given"


@hypothesis_settings(max_examples=300, phases=PHASES)
@given(surveys(), settings(), days, st.integers(0, len(STEPS)))
def test_a_host_that_is_planned_for_again_half_way_or_at_the_end_is_to_become_the_same(
    survey: Survey, chosen: dict[str, object], today: date, came: int
) -> None:
    """The same day: the driver's branch, kind and packages, the way of injection and the images stay what they were to be."""
    plan = make_plan(survey, read_settings(chosen), CATALOG, today)
    if isinstance(plan, Refusal):
        return
    half = make_plan(real(applied(survey, plan.target, came), plan), read_settings(chosen), CATALOG, today)
    assert isinstance(half, Plan), str(half)
    assert half.target.driver == plan.target.driver
    assert (half.target.images, half.target.docker.injection) == (plan.target.images, plan.target.docker.injection)
    whole = make_plan(real(applied(survey, plan.target), plan), read_settings(chosen), CATALOG, today)
    assert isinstance(whole, Plan) and [each.id for each in whole.steps] == [], str(whole)


def real(survey: Survey, plan: Plan) -> Survey:
    """The survey with versions in place of `predicted`; keyrings are not judged by it."""
    assert plan.target.driver is not None
    wanted = plan.target.driver.wanted
    branch = CATALOG.branch(int(wanted.split(".")[0]))
    version = wanted if "." in wanted or branch is None else branch.newest
    keyrings = survey["packages"]["keyrings"]
    found: Survey = json.loads(json.dumps(survey).replace(PREDICTED, version))
    found["packages"]["keyrings"] = keyrings
    return found


HOSTS: Mapping[str, Callable[[], Host]] = {
    **{name: make for name, make in BASES.items() if name in ("fresh debian12 h200", "converged debian13 h200")},
    "rocky9": lambda: with_docker(
        with_driver(machine("rocky9 2 x a100"), "nvidia-rpm", "580.159.04"), "28.5.2", running="1 a b:c"
    ),
    "ubuntu24.04": lambda: with_driver(machine("ubuntu24.04 t4"), "ubuntu-desktop", "580.159.04"),
}


@pytest.mark.parametrize("host", HOSTS)
def test_planning_never_breaks_on_any_one_value_that_a_survey_may_hold(host: str) -> None:
    survey, chosen = HOSTS[host]().survey, read_settings(SETTINGS if host in BASES else {})
    for path, hint in places(survey, Survey):
        for value in samples_of(hint):
            changed: Any = json.loads(json.dumps(survey))
            inner = changed
            for key_ in path[:-1]:
                inner = inner[key_]
            inner[path[-1]] = value
            where = f"{'.'.join(map(str, path))} = {value!r}"
            try:
                plan = make_plan(changed, chosen, CATALOG, TODAY)
                shown = plan_lines({"host": plan}, {"host": describe_host(changed, CATALOG)}, verbose=True)
            except Exception as error:
                raise AssertionError(where) from error
            assert shown and mismatch(changed, Survey, "") is None, where


@hypothesis_settings(max_examples=300, phases=PHASES)
@given(st.data(), settings())
def test_planning_never_breaks_on_a_survey_of_the_right_shape(data: st.DataObject, chosen: dict[str, object]) -> None:
    ready = st.sampled_from(sorted(READY)).map(lambda name: json.loads(READY[name]))
    base: Any = data.draw(st.one_of(ready, surveys()))
    survey = with_holes(base, data.draw)
    assert mismatch(survey, Survey, "") is None
    before = copy.deepcopy(survey)
    plan = make_plan(survey, read_settings(chosen), CATALOG, TODAY)
    assert survey == before
    json.dumps(as_json({"host": plan}))
    assert plan_lines({"host": plan}, {"host": describe_host(survey, CATALOG)}, verbose=True)
