"""What is planned for which host. A file in tests/plans/ is one case, whose name is its sentence, or a list of cases with a name each.

host: a machine in the words of tests/machines.py, with `driver` and `docker` on it (arguments of with_driver and with_docker);
or survey: a base of tests/surveys.py, planned with surveys.SETTINGS
settings: what the user sets (`none`: nothing)       today: the day of the plan
edits: merged into the survey; a list or {unreadable: why} replaces what was there       sections: the same as text of survey.sh
steps / skipped: the ids, in order; without the proof's, which tests/test_proof_steps.py has
plan: what summary() says of it          target: dotted paths -> values
provisional, says, notes: texts that must be in it; only_shown: the refusal of whom would act on it
refusal: its id; accept: the word that overrides it; with it in gpu_accept the refusal must be another one, or gone
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from bringup import catalog
from bringup.plan import STEPS, Plan, Refusal, make_plan
from bringup.settings import ACCEPTABLE, read_settings
from bringup.steps import Change, Skip
from bringup.survey import Survey, unreadable
from tests.machines import machine, with_docker, with_driver
from tests.surveys import BASES, SETTINGS, TODAY

HOST = {"survey", "host", "driver", "docker", "settings", "edits", "sections", "today"}
KEYS = HOST | {"name", "steps", "skipped", "plan", "target", "provisional", "says", "notes", "only_shown", "refusal", "accept"}
FOLDERS = ("plans", "pains")
PROOF = ("survival", "proof-record")
UNREACHED = {"no-repository"}  # a guard: who has no repository is refused for the distribution or the machine


def load_cases() -> dict[str, dict[str, Any]]:
    """By their sentences, which are unique."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(each for folder in FOLDERS for each in (Path(__file__).parent / folder).rglob("*.yml")):
        content = yaml.safe_load(path.read_text())
        for case in content if isinstance(content, list) else [{"name": path.stem.replace("-", " "), **content}]:
            sentence = str(case["name"])
            assert sentence not in found, f"{path.name}: two cases are called {sentence!r}"
            found[sentence] = case
    return found


CASES = load_cases()
PLANNED = [sentence for sentence, case in CASES.items() if "refusal" not in case]


def merged(have: Any, edits: Any) -> Any:
    if not isinstance(edits, Mapping) or not edits or unreadable(edits) is not None or not isinstance(have, Mapping):
        return copy.deepcopy(edits)
    return {**have, **{key: merged(have.get(key), value) for key, value in edits.items()}}


def planned(case: Mapping[str, Any], **more: object) -> Plan | Refusal:
    given = case.get("settings", {})
    given = {} if given == "none" else {**(SETTINGS if "survey" in case else {}), **given}
    accept = [*given.get("gpu_accept", []), *more.pop("gpu_accept", [])]  # type: ignore[misc]
    settings = read_settings({**given, **more, "gpu_accept": accept})
    return make_plan(survey_of(case), settings, catalog.load(), case.get("today", TODAY))


def survey_of(case: Mapping[str, Any]) -> Survey:
    host = BASES[case["survey"]]() if "survey" in case else machine(case["host"])
    host = with_driver(host, **case["driver"]) if "driver" in case else host
    host = with_docker(host, **case["docker"]) if "docker" in case else host
    for name, text in case.get("sections", {}).items():
        host = host.set(name, text)
    survey: Survey = merged(host.survey, case["edits"]) if "edits" in case else host.survey
    return survey


def summary(plan: Plan) -> dict[str, Any]:
    """A plan in a few words and numbers, as `plan` in a case has them."""
    driver, docker, toolkit = plan.target.driver, plan.target.docker, plan.target.toolkit
    set_up = [each for each in plan.steps if each.id not in PROOF]
    return {
        "branch": driver and driver.wanted, "kind": driver and driver.kind, "source": driver and driver.source,
        "packages": " ".join(driver.packages) if driver else "", "headers": " ".join(driver.headers) if driver else "",
        "fabric": driver is not None and "nvidia-fabricmanager.service" in driver.services,
        "stream": driver and driver.stream, "lowest": driver and driver.lowest,
        "repository": driver.repository.url.split("://")[1] if driver and driver.repository else None,
        "toolkit": toolkit.repository.url.split("://")[1] if toolkit else None,
        "docker": docker.packages[0], "docker_repository": docker.repository.url.split("://")[1] if docker.repository else None,
        "injection": docker.injection, "images": [each.rsplit("/", 1)[1] if "/" in each else each for each in plan.target.images],
        "reboots": sum(each.reboots for each in set_up), "steps": [each.id for each in set_up],
    }  # fmt: skip


def at(target: object, path: str) -> Any:
    for part in path.split("."):
        target = target.get(part) if isinstance(target, Mapping) else getattr(target, part) if target is not None else None
    return list(target) if isinstance(target, tuple) else target


@pytest.mark.parametrize("sentence", CASES)
def test_plan(sentence: str) -> None:
    case = CASES[sentence]
    assert set(case) <= KEYS and (bool({"steps", "plan", "notes"} & set(case))) != ("refusal" in case)
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
    have = summary(plan)
    assert {key: have[key] for key in case.get("plan", {})} == case.get("plan", {})
    if "steps" in case:
        assert have["steps"] == case["steps"]
    assert [each.id for each in plan.skipped] == case.get("skipped", [])
    assert case.get("notes", "") in " / ".join(plan.notes)
    assert (plan.only_shown.id if plan.only_shown else None) == case.get("only_shown", plan.only_shown and plan.only_shown.id)
    assert {name: at(plan.target, name) for name in case.get("target", {})} == case.get("target", {})
    assert case.get("provisional", "") in plan.provisional and bool(plan.provisional) == ("provisional" in case)
    assert case.get("says", "") in " / ".join(f"{each.why} {each.what}" for each in (*plan.steps, *plan.skipped))


@pytest.mark.parametrize("sentence", PLANNED)
def test_a_plan_applied_to_its_own_outcome_is_empty(sentence: str) -> None:
    plan, now = planned(case := CASES[sentence]), survey_of(case)
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
        "kernels": None, "modprobe": "nouveau-out", "modules": "driver-loaded", "units": "driver-services", "our_files": "device-links",
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


POLICY = Path(__file__).parents[1] / "bringup" / "policy"


def test_every_refusal_has_a_case() -> None:
    ids = {found for path in POLICY.glob("*.py") for found in re.findall(r'Refused\(\s*"([a-z0-9-]+)"', path.read_text())}
    ids |= {
        name for name, _ in STEPS if name in ("daemon-json", "driver-packages", "toolkit-config")
    }  # a step's HostError has its name
    refused = {found for case in CASES.values() if (found := case.get("refusal") or case.get("only_shown"))}
    assert ids - refused == UNREACHED and refused - ids == set()


@pytest.mark.parametrize("sentence", [each for each in CASES if each not in PLANNED])
def test_a_refusal_is_one_sentence_with_what_is_wrong_and_the_way_out(sentence: str) -> None:
    refused = planned(CASES[sentence])
    assert isinstance(refused, Refusal)
    for text in (refused.reason, refused.way_out):
        assert text and "\n" not in text and text == text.strip() and not text.endswith((".", ":")) and len(text) < 400, text
    assert refused.accept is None or (
        refused.accept in ACCEPTABLE and str(refused).endswith(f"or add {refused.accept} to gpu_accept")
    )
