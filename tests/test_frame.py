"""The frame of a run, through pyinfra's own command in a process of its own: exit codes, what is printed, and the report files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from tests.fakes import SURVEY, data
from tests.surveys import converged, fresh

ROOT = Path(__file__).parent.parent
FEDORA = 'ID=fedora\nVERSION_ID=43\nPRETTY_NAME="Fedora Linux 43"'
# nobody listens there: refused at once
DOWN: dict[str, Any] = {"ssh_hostname": "127.0.0.1", "ssh_port": 1, "ssh_user": "nobody"}
GOOD, NEW, REFUSED, CUT = data(converged()), data(fresh()), data(fresh().set("os_release", FEDORA)), data(converged().lines[:60])


class Ran:
    """What a run left behind."""

    def __init__(self, done: subprocess.CompletedProcess[str], reports: Path) -> None:
        self.code, self.out, self.all = done.returncode, done.stdout, done.stdout + done.stderr
        self.reports = reports

    def report(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.reports / "latest" / f"{name}.json").read_text())
        validate(found, json.loads((ROOT / "docs" / "report.schema.json").read_text()))
        return found


def on_time(given: dict[str, Any]) -> dict[str, Any]:
    """With the clock of now: these hosts were made when the tests were collected, a minute ago on a busy machine."""
    answers = given.get("fake_responses", {})
    lines = list(answers.get(SURVEY, []))
    for at in (place + 1 for place, line in enumerate(lines[:-1]) if line == "@@clock ok"):
        lines[at] = f"|{time.time():.3f}"
    return {**given, "fake_responses": {**answers, SURVEY: lines}} if lines else given


def pyinfra(folder: Path, hosts: dict[str, dict[str, Any]], deploy: str, *options: str, inventory: str = "") -> Ran:
    """`pyinfra -y INVENTORY deploys/DEPLOY`; the inventory lies outside of the checkout."""
    file = folder / "fleet.py"
    reports = folder / "reports"
    every = [(name, {**on_time(given), "gpu_reports": str(reports)}) for name, given in hosts.items()]
    file.write_text(f"hosts = {every!r}\n")
    command = [sys.executable, "-m", "pyinfra", "-y", *options, inventory or str(file), f"deploys/{deploy}"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert "Traceback" not in done.stdout + done.stderr
    return Ran(done, reports)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One run over hosts that end in every way."""
    hosts = {"@fake/one": GOOD, "@fake/two": GOOD, "@fake/refused": REFUSED, "@fake/cut": CUT, "@fake/failing": NEW, "down": DOWN}
    return pyinfra(tmp_path_factory.mktemp("mixed"), hosts, "gpu_host.py")


ENDED = {
    "fake_one": ("done", "proven"), "fake_two": ("done", "proven"), "fake_refused": ("refused", "not proven"),
    "fake_cut": ("failed", "not proven"), "fake_failing": ("failed", "not proven"), "down": ("unreachable", "not proven"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDED)
def test_every_host_has_a_report_that_says_how_it_ended(mixed: Ran, name: str) -> None:
    found = mixed.report(name)
    assert (found["ended"], found["function"]) == ENDED[name]
    assert found["schema"] == 1 and found["revision"].startswith("0.")
    assert bool(found["problems"]) == (found["function"] != "proven")
    assert all("\n" not in each for each in found["problems"])
    assert (mixed.reports / "latest" / f"{name}.log").read_text()


def test_a_run_with_a_host_that_is_not_proven_exits_1_and_the_others_are_proven(mixed: Ran) -> None:
    assert mixed.code == 1
    summary = mixed.all[mixed.all.index("--> gpu-bringup:") :]
    for line in (
        "@fake/one: proven",
        "@fake/two: proven",
        "@fake/refused: refused",
        "@fake/failing: failed",
        "down: unreachable",
    ):
        assert line in summary
    assert "Fedora Linux 43" in summary and str(mixed.reports) in summary
    assert "Unable to connect to port 1 on 127.0.0.1)): nothing listens there" in summary


def test_reports_have_one_file_of_each_kind_a_host_and_a_link_to_the_newest(mixed: Ran) -> None:
    assert sorted(each.stem for each in (mixed.reports / "latest").glob("*.json")) == sorted(ENDED)
    assert (mixed.reports / "latest").is_symlink() and (mixed.reports / "latest").resolve().name.endswith("Z")


def test_beside_the_hosts_files_stand_those_of_the_fleet(mixed: Ran) -> None:
    folder = mixed.reports / "latest"
    again = (folder / "failed.args").read_text().splitlines()
    assert again == [f"--limit {each}" for each in ("@fake/cut", "@fake/failing", "@fake/refused", "down")]
    assert "@fake/refused" in (folder / "index.html").read_text() and "@fake/refused" in (folder / "junit.xml").read_text()


def test_the_failed_hosts_alone_are_run_again(mixed: Ran, tmp_path: Path) -> None:
    hosts = {"@fake/one": GOOD, "@fake/refused": REFUSED, "@fake/cut": CUT, "@fake/failing": NEW, "down": DOWN}
    again = (mixed.reports / "latest" / "failed.args").read_text().split()
    ran = pyinfra(tmp_path, hosts, "verify.py", *again)
    assert sorted(each.stem for each in (ran.reports / "latest").glob("*.json")) == sorted(
        ["fake_refused", "fake_cut", "fake_failing", "down"]
    )


def test_converged_hosts_exit_0_without_changes(tmp_path: Path) -> None:
    ran = pyinfra(tmp_path, {"@fake/one": GOOD, "@fake/two": GOOD}, "gpu_host.py")
    assert ran.code == 0, ran.all
    for name in ("fake_one", "fake_two"):
        assert ran.report(name)["changed"] == [] and ran.report(name)["measured"]["cuda_startup"]["samples"]
    assert ran.all.count("changed   nothing") == 2


def test_the_proof_runs_alone_and_sends_no_change(tmp_path: Path) -> None:
    ran = pyinfra(tmp_path, {"@fake/one": GOOD, "@fake/gone": data(converged().set("docker_images", ""))}, "verify.py")
    assert ran.code == 1 and ran.report("fake_one")["function"] == "proven"
    assert "not on the host" in ran.report("fake_gone")["problems"][0] and ran.report("fake_gone")["changed"] == []


def test_dry_shows_the_steps_with_their_reasons_and_sends_nothing_but_surveys(tmp_path: Path) -> None:
    ran = pyinfra(tmp_path, {"@fake/new": NEW, "@fake/one": GOOD}, "gpu_host.py", "--dry", "--debug")
    assert ran.code == 0, ran.all
    assert "nouveau holds the GPU" in ran.all and "nothing to change" in ran.all
    simulated = [each for each in ran.all.split("[fake] simulating ")[1:] if not each.startswith("command")]
    assert simulated == [], "a file was put"
    assert ran.all.count("[fake] simulating command") == ran.all.count(f"printf '{SURVEY}") == 2
    assert not ran.reports.exists()


def test_a_refused_host_fails_a_dry_run_and_has_its_report(tmp_path: Path) -> None:
    ran = pyinfra(tmp_path, {"@fake/new": NEW, "@fake/refused": REFUSED}, "gpu_host.py", "--dry")
    assert ran.code == 1
    assert (ran.report("fake_refused")["ended"], ran.report("fake_new")["ended"]) == ("refused", "planned")


@pytest.mark.parametrize("deploy", ["gpu_host.py", "plan.py"])
def test_a_wrong_setting_is_one_sentence_and_exit_2(tmp_path: Path, deploy: str) -> None:
    ran = pyinfra(tmp_path, {"@fake/one": GOOD, "@fake/two": {**GOOD, "gpu_rebot": "never"}}, deploy)
    assert ran.code == 2
    assert ran.all.count("unknown setting gpu_rebot; did you mean gpu_reboot?") == 1
    assert not ran.reports.exists() and "gpu-bringup:" not in ran.all


def test_a_mistyped_inventory_path_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    ran = pyinfra(tmp_path, {}, "gpu_host.py", inventory=f"{tmp_path}/flete.py")
    assert ran.code == 2 and f"there is no inventory file {tmp_path}/flete.py" in ran.all


def test_a_limit_that_matches_nothing_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    ran = pyinfra(tmp_path, {"@fake/one": GOOD}, "gpu_host.py", "--limit", "@fake/oen")
    assert ran.code == 2 and not ran.reports.exists()
    assert "no host" in ran.all.lower()


def test_where_no_host_can_be_reached_the_report_says_so(tmp_path: Path) -> None:
    ran = pyinfra(tmp_path, {"down": DOWN}, "gpu_host.py")
    assert ran.code == 1 and ran.report("down")["ended"] == "unreachable"


PLANS = [
    ({"@fake/new": NEW, "@fake/one": GOOD}, 0, ["none loaded -> 580", "nothing to change"]),
    ({"@fake/new": NEW, "@fake/refused": REFUSED, "@fake/cut": CUT}, 3, ["unsupported-distribution", "Fedora Linux 43"]),
    ({"@fake/one": GOOD, "@fake/cut": CUT}, 1, ["could not be surveyed"]),
    ({"@fake/one": GOOD, "down": DOWN}, 1, ["could not be reached (Could not connect"]),
]


@pytest.mark.parametrize(("hosts", "code", "said"), PLANS, ids=["planned", "refused", "no-survey", "unreachable"])
def test_the_plan_is_a_table_with_an_exit_code(
    tmp_path: Path, hosts: dict[str, dict[str, Any]], code: int, said: list[str]
) -> None:
    ran = pyinfra(tmp_path, hosts, "plan.py")
    assert ran.code == code, ran.all
    assert all(each in ran.out for each in said), ran.out
    assert not ran.reports.exists()
