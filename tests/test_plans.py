"""What is planned for which host: one file in tests/plans/ a case, its name is the sentence.

survey: a base of tests/surveys.py          settings: changes of surveys.SETTINGS, or `none` for the defaults alone
edits: merged into the survey; a list or {unreadable: why} replaces what was there       sections: the same as text of survey.sh
steps / skipped: the ids, in order          target: dotted paths -> values     provisional, says: texts that must be in it
refusal: its id; accept: the word that overrides it; with it in gpu_accept the refusal must be another one, or gone
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bringup import catalog
from bringup.plan import STEPS, Plan, Refusal, make_plan
from bringup.settings import read_settings
from bringup.steps import Change, Skip
from bringup.survey import Survey, unreadable
from tests.surveys import BASES, SETTINGS, TODAY

KEYS = (
    "survey",
    "settings",
    "edits",
    "sections",
    "today",
    "steps",
    "skipped",
    "target",
    "provisional",
    "says",
    "refusal",
    "accept",
)
CASES = sorted((Path(__file__).parent / "plans").glob("*.yml"))
PLANNED = [each for each in CASES if "refusal" not in yaml.safe_load(each.read_text())]


def merged(have: Any, edits: Any) -> Any:
    if not isinstance(edits, Mapping) or not edits or unreadable(edits) is not None or not isinstance(have, Mapping):
        return copy.deepcopy(edits)
    return {**have, **{key: merged(have.get(key), value) for key, value in edits.items()}}


def planned(case: Mapping[str, Any], **more: object) -> Plan | Refusal:
    given = {} if case.get("settings") == "none" else {**SETTINGS, **case.get("settings", {})}
    return make_plan(survey_of(case), read_settings({**given, **more}), catalog.load(), case.get("today", TODAY))


def survey_of(case: Mapping[str, Any]) -> Survey:
    host = BASES[case["survey"]]()
    for name, text in case.get("sections", {}).items():
        host = host.set(name, text)
    survey: Survey = merged(host.survey, case["edits"]) if "edits" in case else host.survey
    return survey


def at(target: object, path: str) -> Any:
    for part in path.split("."):
        target = target[part] if isinstance(target, Mapping) else getattr(target, part) if target is not None else None
    return list(target) if isinstance(target, tuple) else target


@pytest.mark.parametrize("path", CASES, ids=[each.stem for each in CASES])
def test_plan(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    assert set(case) <= set(KEYS) and ("steps" in case) != ("refusal" in case)
    plan = planned(case)
    if "refusal" in case:
        assert isinstance(plan, Refusal), [each.id for each in plan.steps]
        assert (plan.id, plan.accept) == (case["refusal"], case.get("accept")), str(plan)
        assert case.get("says", "") in str(plan)
        if plan.accept:
            overridden = planned(case, gpu_accept=[plan.accept])
            assert not isinstance(overridden, Refusal) or overridden.id != plan.id
        return
    assert isinstance(plan, Plan), str(plan)
    assert [each.id for each in plan.steps] == case["steps"]
    assert [each.id for each in plan.skipped] == case.get("skipped", [])
    assert {name: at(plan.target, name) for name in case.get("target", {})} == case.get("target", {})
    assert case.get("provisional", "") in plan.provisional and bool(plan.provisional) == ("provisional" in case)
    assert case.get("says", "") in " / ".join(f"{each.why} {each.what}" for each in (*plan.steps, *plan.skipped))


@pytest.mark.parametrize("path", PLANNED, ids=[each.stem for each in PLANNED])
def test_a_plan_applied_to_its_own_outcome_is_empty(path: Path) -> None:
    plan, now = planned(case := yaml.safe_load(path.read_text())), survey_of(case)
    assert isinstance(plan, Plan)
    before = copy.deepcopy(now)
    for step, function in STEPS:
        found = function(now, plan.target)
        if isinstance(found, Change):
            assert now != found.after, f"{step} would leave everything as it is"
            now = found.after
    again = {step: found for step, function in STEPS if isinstance(found := function(now, plan.target), Change)}
    assert {step: found.why for step, found in again.items()} == {}
    assert survey_of(case) == before, "a step wrote into the survey that it was given"


def test_a_step_sees_what_the_steps_before_it_leave_behind() -> None:
    """The reboot is planned because of the packages that only the plan has installed so far."""
    plan = planned({"survey": "fresh debian12 h200"})
    assert isinstance(plan, Plan)
    reboot = next(each for each in plan.steps if each.id == "reboot")
    assert reboot.reboots and reboot.why == "nouveau holds the GPU"
    assert sum(each.reboots for each in plan.steps) == 1


@pytest.mark.parametrize("base", [name for name in BASES if name.startswith("converged")])
def test_a_converged_host_needs_nothing_and_notices_each_thing_that_is_taken_away(base: str) -> None:
    host, chosen = BASES[base](), read_settings(SETTINGS)
    plan = make_plan(host.survey, chosen, catalog.load(), TODAY)
    assert isinstance(plan, Plan) and plan.steps == () and plan.skipped == ()
    gone = {
        "repositories": "driver-repository", "keyrings": "driver-repository", "apt_preferences": "driver-repository",
        "kernels": None, "modprobe": "nouveau-out", "modules": "driver-loaded", "units": "driver-services",
        "limits": "memlock", "systemd_dropins": "memlock", "docker_dropins": "memlock", "daemon_json": "daemon-json",
        "docker_images": "images", "provenance": "provenance", **({"cdi": "cdi-spec"} if "debian13" in base else {}),
    }  # fmt: skip
    for section, step in gone.items():
        found = make_plan(host.set(section, "").survey, chosen, catalog.load(), TODAY)
        assert isinstance(found, Plan), str(found)
        ids = [each.id for each in found.steps]
        assert (step in ids) if step else ids == [], (section, ids)


def test_a_change_is_never_planned_for_a_skipped_step() -> None:
    case = {"survey": "fresh debian12 h200", "sections": {"pid1_capabilities": "CapBnd:\t0000000000000000"}}
    plan = planned(case)
    assert isinstance(plan, Plan)
    assert [each.id for each in plan.skipped] == ["memlock"] and "memlock" not in [each.id for each in plan.steps]
    assert isinstance(dict(STEPS)["memlock"](survey_of(case), plan.target), Skip)
