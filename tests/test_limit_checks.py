"""Limits as they were read in place -> checks; and the lines of the script that reads them, run on this machine."""

from __future__ import annotations

import subprocess

import pytest

from bringup.limit_checks import limit_checks
from bringup.survey import Survey
from facts.limits import SHOW, Found, found
from tests.fakes import memlock
from tests.surveys import converged, settings, target_of

ALL = ("login", "unit", "user")


def places(**instead: list[str]) -> dict[str, Found]:
    return found([line for each in ALL for line in instead.get(each, memlock(each))])


def statuses(survey: Survey, have: dict[str, Found], **chosen: object) -> dict[str, str]:
    target = target_of(converged("debian13"), settings(**chosen)).target
    return {each.name: each.status for each in limit_checks(survey, target, have)}


def test_what_is_wanted_everywhere_passes() -> None:
    assert set(statuses(converged().survey, places()).values()) == {"pass"}


@pytest.mark.parametrize(
    ("place", "name"), [("login", "memlock-of-logins"), ("unit", "memlock-of-units"), ("user", "memlock-of-another-user")]
)
@pytest.mark.parametrize(("soft", "hard"), [("8388608", "unlimited"), ("8388608", "8388608")])
def test_a_place_that_has_less_fails_alone_and_what_is_there_is_said(place: str, name: str, soft: str, hard: str) -> None:
    survey, target = converged().survey, target_of(converged()).target
    checks = limit_checks(survey, target, places(**{place: memlock(place, soft, hard)}))
    wrong = {each.name: each.detail for each in checks if each.status != "pass"}
    assert set(wrong) == {name} and "8388608" in wrong[name] and "unlimited is wanted" in wrong[name]


def test_a_line_of_the_users_that_wins_is_a_warning_that_names_it() -> None:
    survey = converged().survey
    survey["limits"]["limits_d"]["/etc/security/limits.d/99-site.conf"] = "* hard memlock 64\n"
    checks = limit_checks(survey, target_of(converged()).target, places(login=memlock("login", "65536", "65536")))
    assert ("warn", True) in [(each.status, "99-site.conf" in each.detail) for each in checks if each.name == "memlock-of-logins"]


def test_what_could_not_be_read_is_skipped_with_its_reason_and_is_no_pass() -> None:
    checks = limit_checks(converged().survey, target_of(converged()).target, places(user=["user problem exec: sh: not found"]))
    assert [(each.status, each.detail) for each in checks if each.status != "pass"] == [
        ("skipped", "could not be read: exec: sh: not found")
    ]


def test_a_place_that_nobody_asked_is_no_check_and_neither_is_what_the_host_cannot_have() -> None:
    have = places()
    del have["login"]
    assert set(statuses(converged().survey, have)) == {"memlock-of-units", "memlock-of-another-user"}
    host = converged().set("pid1_capabilities", "CapBnd:\t0000000000000000")
    assert limit_checks(host.survey, target_of(host).target, have) == []


@pytest.mark.parametrize(("wanted", "status"), [(1048576, "pass"), (65536, "fail")])
def test_open_files_are_held_against_what_is_set(wanted: int, status: str) -> None:
    assert statuses(converged().survey, places(), gpu_open_files=wanted)["open-files-in-container"] == status


def test_the_shells_lines_are_the_kernels_own() -> None:
    done = subprocess.run(["sh", "-c", SHOW], capture_output=True, text=True, timeout=30)
    read = found([f"unit {line}" for line in done.stdout.splitlines()])["unit"]
    assert len(read["memlock"]) == 2 and len(read["open_files"]) == 2
