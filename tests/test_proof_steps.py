"""How thorough a proof is: `auto` proves anew, and in full, what is another host than the one of the last proof; the rest stays quick."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bringup import survival as kept_result
from bringup.settings import Verify
from bringup.steps import Change
from bringup.steps.driver import service_limit_s
from bringup.steps.packages import PREDICTED
from bringup.steps.proof import level, proof_reboot, proof_record, subject, survival
from bringup.survey import Survey, known
from bringup.survival import SCHEMA, reboot_checks
from bringup.target import Target
from tests.surveys import BASES, Host, proven, settings, target_of

HOST = BASES["converged debian13 8 x h200"]()
NEVER = HOST.set("proof", status="absent")


def target(verify: Verify = "auto") -> Target:
    return replace(target_of(HOST).target, verify=verify)


def steps(survey: Survey, verify: Verify = "auto") -> list[str]:
    """What is done, one after the other; nothing is left for a second time."""
    found: list[str] = []
    for _ in range(2):
        for name, function in (("survival", survival), ("proof-record", proof_record)):
            change = function(survey, target(verify))
            if isinstance(change, Change):
                found.append(name)
                survey = change.after
    return found


def test_a_host_that_was_never_proven_is_proven_in_full_once() -> None:
    assert level(NEVER.survey, target()) == "standard"
    assert steps(NEVER.survey) == ["survival", "proof-record"]


@pytest.mark.parametrize("base", [name for name in BASES if name.startswith("fresh") and "without" not in name])
def test_a_plan_for_a_fresh_host_ends_with_its_first_proof(base: str) -> None:
    assert [each.id for each in target_of(BASES[base]()).steps][-2:] == ["survival", "proof-record"]


def test_a_host_without_a_gpu_has_nothing_to_prove() -> None:
    host = BASES["fresh debian12 without gpu"]()
    plan = target_of(host, settings(gpu_expected_count=0))
    assert not {"survival", "proof-record"} & {each.id for each in plan.steps}


def test_a_converged_host_stays_quick() -> None:
    assert level(HOST.survey, target()) == "quick" and steps(HOST.survey) == []
    full = HOST.set("proof", proven(HOST, "full"))
    assert level(full.survey, target()) == "quick" and steps(full.survey, "full") == steps(full.survey, "standard") == []


def full(survey: Survey, **changed: Any) -> Change | None:
    return proof_reboot(survey, replace(target("full"), **changed))


def test_a_full_proof_reboots_the_host_once_where_it_may() -> None:
    change = full(HOST.survey)
    assert change is not None and change.reboots and kept_result.rebooted(change.after["proof"]) == change.after["boot_id"]
    assert reboot_checks(change.after["proof"], str(change.after["boot_id"]))[0].status == "pass"
    assert full(HOST.survey, reboot="never") is None and proof_reboot(HOST.survey, target("standard")) is None
    busy = HOST.set("docker_running", "abc training user/image")
    assert full(busy.survey) is None
    assert (change := full(busy.survey, reboot="always")) is not None and change.reboots
    assert full(HOST.set("device_nodes", "/dev/nvidiactl").set("cdi", "").survey) is None, "not in order"


def test_a_reboot_that_the_driver_needs_is_enough() -> None:
    survey = HOST.survey
    survey["boot_id"] = PREDICTED
    change = full(survey)
    assert change is not None and not change.reboots


def test_a_reboot_is_of_one_boot_and_is_kept_by_the_rest_of_the_proof() -> None:
    boot = str(known(HOST.survey["boot_id"]))
    text = json.dumps({"schema": SCHEMA, "of": subject(HOST.survey, target()), "steps": [], "rebooted": boot})
    host = HOST.set("proof", text)
    assert full(host.survey) is None and reboot_checks(text, "another") == [] == reboot_checks(None, boot)
    assert full(host.set("boot_id", "another").survey) is not None
    after = survival(host.survey, target("full"))
    assert isinstance(after, Change) and kept_result.rebooted(after.after["proof"]) == boot


CHANGED = [
    ("boot_id", "another-boot"),
    ("kernel", "6.12.999-cloud-amd64"),
    ("driver_loaded_version", "580.178.04"),
    ("toolkit", "NVIDIA Container Toolkit CLI version 1.21.0"),
    ("engine", "Docker version 28.5.2, build 1"),
]


@pytest.mark.parametrize(("section", "text"), CHANGED, ids=[each for each, _ in CHANGED])
def test_auto_proves_anew_what_has_changed_since_the_last_proof(section: str, text: str) -> None:
    host = HOST.set(section, text)
    assert level(host.survey, target()) == "standard"
    if section == "driver_loaded_version":
        host = host.set("module_version", text).set("cdi", "\n".join(HOST.sections["cdi"][1]).replace("580.159.04", text))
    assert steps(host.survey) == ["survival", "proof-record"]


def test_another_image_or_way_of_injection_is_another_host() -> None:
    for changed in (
        replace(target(), images=("registry.example:5000/pytorch@sha256:" + "6b" * 32,)),
        replace(target(), docker=replace(target().docker, injection="runtime")),
    ):
        assert level(HOST.survey, changed) == "standard"


def test_a_proof_that_did_not_come_to_its_end_is_made_again() -> None:
    """The container was tried over daemon-reload, and the run was killed before the benchmarks."""
    kept = json.loads(proven(HOST))
    del kept["proven"]
    half = HOST.set("proof", json.dumps(kept))
    assert level(half.survey, target()) == "standard" and steps(half.survey) == ["proof-record"]


def test_what_was_not_survived_is_tried_again() -> None:
    kept = json.loads(proven(HOST))
    kept["steps"][1]["probe"] = {"failed": {"stage": "cu_init", "error": "lost"}, "gpus": []}
    assert steps(HOST.set("proof", json.dumps({**kept, "proven": None})).survey)[0] == "survival"


@pytest.mark.parametrize("text", ["{half", "[]", '{"schema": 1}', '{"schema": 2, "of": {}, "steps": {}}'])
def test_a_kept_file_that_cannot_be_used_is_made_anew(text: str) -> None:
    assert steps(HOST.set("proof", text).survey) == ["survival", "proof-record"]


def test_auto_disturbs_nobody_who_works_on_the_host() -> None:
    busy = NEVER.set("docker_running", "abc training user/image")
    assert level(busy.survey, target()) == "quick" and steps(busy.survey) == []
    assert steps(busy.survey, "standard") == ["survival", "proof-record"]


NOT_IN_ORDER = [
    ("modules", "nvidia", "ok"),
    ("module_version", "580.178.04", "ok"),
    ("docker_info", "", "timeout"),
    ("docker_images", "", "ok"),
    ("cdi", "", "ok"),
    ("toolkit", "", "absent"),
    ("daemon_json", "{oops", "ok"),
]


@pytest.mark.parametrize(("section", "text", "status"), NOT_IN_ORDER)
def test_a_host_that_is_not_in_order_is_not_disturbed(section: str, text: str, status: str) -> None:
    host: Host = NEVER.set(section, text, status)
    assert survival(host.survey, target("full")) is None and proof_record(host.survey, target("full")) is None


@pytest.mark.parametrize("verify", ["quick", "off"])
def test_quick_and_off_disturb_and_note_nothing(verify: Verify) -> None:
    assert steps(NEVER.survey, verify) == []


def test_full_tries_a_restart_of_docker_that_standard_did_not() -> None:
    change = survival(HOST.survey, target("full"))
    assert change is not None and "docker-restart: not tried yet" in change.why
    assert steps(HOST.survey, "full") == ["survival", "proof-record"]


def test_a_proof_is_of_everything_that_can_break_it() -> None:
    now = subject(HOST.survey, target())
    assert set(now) == {"boot_id", "kernel", "driver", "toolkit", "docker", "injection", "image"} and all(now.values())


def test_eight_gpus_have_more_time_to_come_up_than_one() -> None:
    """150 s were seen for 8 × H200, and were no failure."""
    one, eight = (service_limit_s(BASES[name]().survey) for name in ("fresh debian12 h200", "fresh debian13 8 x h200"))
    assert one == 180 and eight == 600
