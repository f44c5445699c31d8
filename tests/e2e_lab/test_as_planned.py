"""The check that a run did what it had planned and shown: it must fail wherever one of the three differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.as_planned import expect_as_planned, expect_no_changes, shown
from e2e.expect import Failed
from e2e.pyinfra_run import Run

DRY = """\
    Loading: deploys/gpu_host.py
    [lab-1] driver-packages: install the open driver 580, because it is not there: neither of both
    [lab-2] apt-settings: write /etc/apt/apt.conf.d/x, because it is not there
    [lab-1] reboot (reboots): reboot, because nouveau holds the GPU
    [lab-1] memlock is skipped: PID 1 may not, because of its capabilities
"""
TABLE = """\
host   GPU       driver
lab-1  1 x H200  none -> 580
    driver 580, open module, from nvidia; GPUs reach containers by cdi
    driver-packages: install the open driver 580, because it is not there: neither of both
    reboot (reboots): reboot, because nouveau holds the GPU
    note: nothing of it, because it is a note
lab-2  1 x H200  none -> 580
    apt-settings: write /etc/apt/apt.conf.d/x, because it is not there
"""
STEPS = {"lab-1": ["driver-packages", "reboot"], "lab-2": ["apt-settings"]}


def run(folder: Path, printed: str, planned: list[str], changed: list[str], why: str = "it is not there") -> Run:
    (folder / "log").write_text(printed)
    result = {"host": "lab-1", "planned": [{"step": each, "why": why} for each in planned], "changed": changed}
    result |= {"ended": "done", "function": "proven", "hardware": "simulated", "problems": []}
    (folder / "reports" / "2026-12-01T000000Z").mkdir(parents=True)
    (folder / "reports" / "2026-12-01T000000Z" / "lab-1.json").write_text(json.dumps(result))
    return Run("pyinfra", 0, 1.0, folder / "log", folder / "reports")


def test_a_dry_run_and_the_table_of_plans_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    assert shown(run(tmp_path, DRY, [], [])) == STEPS == shown(run(tmp_path / "table", TABLE, [], []))


def test_a_run_that_did_what_it_had_shown_passes(tmp_path: Path) -> None:
    expect_as_planned(run(tmp_path, DRY, STEPS["lab-1"], STEPS["lab-1"]), "lab-1")


def test_what_only_the_index_knows_may_be_left_out_and_nothing_else(tmp_path: Path) -> None:
    why = "provenance.json differs in packages (versions: from the repository's index)"
    expect_as_planned(run(tmp_path, DRY, STEPS["lab-1"], ["driver-packages"], why), "lab-1")
    (tmp_path / "new").mkdir()
    with pytest.raises(Failed):
        new = "provenance.json is not there (versions: from the repository's index)"
        expect_as_planned(run(tmp_path / "new", DRY, STEPS["lab-1"], ["driver-packages"], new), "lab-1")


@pytest.mark.parametrize(
    ("planned", "changed"),
    [
        (["driver-packages", "reboot"], ["driver-packages"]),
        (["driver-packages", "reboot"], ["driver-packages", "reboot", "daemon-json"]),
        (["driver-packages", "reboot"], ["reboot", "driver-packages"]),
        (["driver-packages"], ["driver-packages"]),
        (["driver-packages", "reboot", "daemon-json"], ["driver-packages", "reboot", "daemon-json"]),
    ],
    ids=["left out", "unplanned", "another order", "planned less than shown", "planned more than shown"],
)
def test_any_difference_fails(planned: list[str], changed: list[str], tmp_path: Path) -> None:
    with pytest.raises(Failed):
        expect_as_planned(run(tmp_path, DRY, planned, changed), "lab-1")


def test_a_second_run_has_nothing_planned_and_nothing_done(tmp_path: Path) -> None:
    expect_no_changes(run(tmp_path, "", [], []), ["lab-1"])
    for planned, changed in ((["reboot"], []), ([], ["reboot"])):
        folder = tmp_path / f"{len(planned)}"
        folder.mkdir()
        with pytest.raises(Failed):
            expect_no_changes(run(folder, "", planned, changed), ["lab-1"])
