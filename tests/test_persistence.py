"""nvidia-persistenced that runs and keeps nothing ready, as Ubuntu's unit starts it, or that may not bring a Grace GPU's memory online."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bringup.steps import Change
from bringup.steps.driver import PERSISTENCE, driver_services, persistence_arguments, persistence_dropin
from bringup.survey import Survey, known
from tests.surveys import BASES, target_of

HOST = BASES["converged debian13 h200"]()
PROGRAM = "/usr/bin/nvidia-persistenced"


def started_with(arguments: str, arch: str = "x86_64") -> Survey:
    """As `systemctl show -p ExecStart` tells it."""
    survey = HOST.survey
    survey["arch"] = arch
    units = known(survey["units"])
    assert units is not None
    units[PERSISTENCE]["exec_start"] = f"{{ path={PROGRAM} ; argv[]={PROGRAM} {arguments} ; ignore_errors=no ; pid=0 }}"
    return survey


@pytest.mark.parametrize(
    ("arguments", "arch", "wanted"),
    [
        ("--user nvidia-persistenced --no-persistence-mode --verbose", "x86_64", "--user nvidia-persistenced --verbose"),
        ("--user nvidia-persistenced --persistence-mode --verbose", "x86_64", None),
        ("--verbose", "x86_64", None),
        ("--user nvidia-persistenced --verbose", "aarch64", "--verbose"),
        ("--verbose --user nvidia-persistenced --no-persistence-mode", "aarch64", "--verbose"),
        ("--verbose", "aarch64", None),
    ],
)
def test_what_it_is_started_with_instead(arguments: str, arch: str, wanted: str | None) -> None:
    assert persistence_arguments(started_with(arguments, arch)) == (wanted and f"{PROGRAM} {wanted}")


def test_the_step_names_it_and_has_nothing_left_to_do_then() -> None:
    driver = target_of(HOST).target.driver
    assert driver is not None
    change = driver_services(started_with("--no-persistence-mode"), driver)
    assert isinstance(change, Change) and "keeps no GPU ready" in change.why
    assert driver_services(started_with("--no-persistence-mode"), replace(driver, source="preinstalled")) is None
    assert driver_services(change.after, driver) is None and driver_services(HOST.survey, driver) is None


def test_a_drop_in_takes_the_units_own_command_away_first() -> None:
    assert persistence_dropin(PROGRAM).splitlines()[1:] == ["[Service]", "ExecStart=", f"ExecStart={PROGRAM}"]
