"""facts/survey.sh itself, run on this machine by the shells that hosts have."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from pyinfra.api.exceptions import FactProcessError

import facts.survey
from bringup.survey import Survey, known, unreadable
from bringup.survey.saved import mismatch
from facts.survey import HostSurvey
from tests.surveys import converged, fresh

SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"]}
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    found = SHELLS[request.param]
    if shutil.which(found[0]) is None:
        pytest.skip(
            f"{found[0]} is not installed (Debian: apt-get install {found[0]}{'-static' if found[0] == 'busybox' else ''})"
        )
    return found


@functools.cache
def survey_by(*argv: str) -> list[str]:
    """What a survey of this machine prints; taken once, for several tests."""
    return run(list(argv), HOME="/nonexistent")[0]


def run(argv: list[str], **more: str) -> tuple[list[str], float]:
    """What the survey printed, and how many seconds it took until nobody held its output open any more."""
    began = time.monotonic()
    done = subprocess.run(
        [*argv, "-c", HostSurvey().command()], capture_output=True, text=True, env={**os.environ, **more}, timeout=60, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines(), time.monotonic() - began


def test_a_survey_of_this_machine_is_whole(shell: list[str]) -> None:
    lines = survey_by(*shell)
    survey = HostSurvey().process(lines)
    assert mismatch(survey, Survey, "") is None
    assert survey["root"] == (os.geteuid() == 0) and survey["kernel"] == os.uname().release
    assert abs(survey["clock_offset_s"]) < 30
    assert survey["memory_mib"] and survey["disks"]["/"]["free_kib"] and survey["disks"]["/"]["free_inodes"]


def test_without_root_what_needs_it_is_unreadable_and_nothing_else_is_missing(shell: list[str]) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become another user")
    survey = HostSurvey().process(survey_by(*NOBODY, *shell))
    assert mismatch(survey, Survey, "") is None
    assert survey["root"] is False
    # a file for everybody tells what container this is, where there is one; else only root may look at PID 1
    told = any(Path(each).exists() for each in ("/run/systemd/container", "/.dockerenv", "/run/systemd/system"))
    assert (unreadable(survey["container"]) is None) == told
    assert survey["kernel"] == os.uname().release and survey["os"] == HostSurvey().process(survey_by(*shell))["os"]


def test_a_noisy_login_shell_does_no_harm(shell: list[str]) -> None:
    lines = survey_by(*shell)
    noisy = HostSurvey().process(["Last login: today", "@@end", "|x", *lines])
    quiet = HostSurvey().process(lines)
    assert {**noisy, "clock_offset_s": 0} == {**quiet, "clock_offset_s": 0}


def test_a_file_without_permission_is_told_from_one_that_is_not_there(shell: list[str]) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become another user")
    script = (Path(facts.survey.__file__).parent / "survey.sh").read_text()
    functions = script[script.index("head_() {") : script.index("\njobs_=")]
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "closed").mkdir(mode=0o700)
        for path, mode in (("readable", 0o644), ("secret", 0o600)):
            (folder / path).write_text("# comment\n\n  one\nno end")
            (folder / path).chmod(mode)
        asked = "".join(
            f"file {each.replace('/', '_')} {folder}/{each}\n" for each in ("readable", "secret", "gone", "closed/f", "closed")
        )
        asked += f"files several {folder}/readable {folder}/secret {folder}/gone\n"
        said = subprocess.run(
            [*NOBODY, *shell, "-c", functions + "\n" + asked], capture_output=True, text=True, check=True
        ).stdout
    assert said.replace(name, "") == (
        "@@readable ok\n|# comment\n|\n|  one\n|no end\n@@secret failed\n|no permission to read /secret\n@@gone absent\n"
        "@@closed_f failed\n|no permission to look into /closed\n@@closed failed\n|no permission to read /closed\n"
        "@@several ok\n|==> /readable\n|  one\n|no end\n|==> /secret\n|==! no permission\n"
    )


def test_what_hangs_forever_is_a_timeout_and_the_survey_ends(
    shell: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until its output is closed: as long as a job holds it open, ssh goes on waiting."""
    limit_s = 1
    monkeypatch.setattr(facts.survey, "LIMIT_S", limit_s)
    for tool in ("nvidia-smi", "docker"):
        (tmp_path / tool).write_text(f"#!/bin/sh\necho $$ >>{tmp_path}/pids\nexec sleep 300\n")
        (tmp_path / tool).chmod(0o755)
    try:
        lines, took_s = run(shell, PATH=f"{tmp_path}:{os.environ['PATH']}")
    finally:
        for pid in (tmp_path / "pids").read_text().split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
    assert took_s < limit_s + 3
    survey = HostSurvey().process(lines)
    for found in (survey["driver"]["smi"], survey["docker"]["info"], survey["docker"]["running"], survey["docker"]["version"]):
        assert found == {"unreadable": "no answer within the time limit"}
    assert survey["kernel"] == os.uname().release


COUNTS = [  # what docker info prints, whether containers and images are then listed
    ('{"ContainersRunning":0,"Images":0,"ServerVersion":"28.5.2"}', []),
    ('{"ContainersRunning":0,"Images":7}', ["image"]),
    ('{"ContainersRunning":1,"Images":0}', ["ps"]),
    ('{"ContainersRunning":10,"Images":20}', ["image", "ps"]),
    ('{"ID":"","ContainersRunning":0,"Images":0,"ServerErrors":["Cannot connect to the Docker daemon"]}', ["image", "ps"]),
    ("Cannot connect to the Docker daemon", ["image", "ps"]),
]


@pytest.mark.parametrize(("info", "listed"), COUNTS, ids=[info[:40] for info, _ in COUNTS])
def test_docker_is_asked_for_lists_only_where_it_has_something_to_list(
    shell: list[str], info: str, listed: list[str], tmp_path: Path
) -> None:
    """And where its daemon is down: that it lists nothing then is no empty list."""
    docker = tmp_path / "docker"
    docker.write_text(
        f"#!/bin/sh\ncase $1 in info) echo '{info}' ;; ps|image) echo $1 >>{tmp_path}/asked; echo 'a b c'; exit 1 ;; esac\n"
    )
    docker.chmod(0o755)
    lines, _ = run(shell, PATH=f"{tmp_path}:{os.environ['PATH']}")
    asked = tmp_path / "asked"
    assert sorted(set(asked.read_text().split()) if asked.exists() else []) == listed
    found = HostSurvey().process(lines)["docker"]
    for name, value in (("ps", found["running"]), ("image", found["images"])):
        assert value == ({"unreadable": "exit 1 a b c"} if name in listed else [])


def test_tests_build_their_surveys_from_the_sections_that_the_script_prints() -> None:
    """tests/surveys.py would go stale otherwise. Only of dpkg's: this is no rpm machine, or some are left out."""
    script = HostSurvey().command()
    names = [line.split(" ")[0][2:] for line in fresh().lines if line.startswith("@@")][1:-1]
    assert [name for name in names if name not in script] == []
    if shutil.which("dpkg-query") and shutil.which("dash"):
        printed = {line.split(" ")[0][2:] for line in survey_by("dash") if line.startswith("@@")}
        assert printed - {"gpu-bringup-survey", "end"} == set(fresh().sections) == set(converged().sections)


def test_output_that_is_no_survey_fails_the_fact_by_pyinfras_own_error() -> None:
    with pytest.raises(FactProcessError, match="the survey was cut off"):
        HostSurvey().process(fresh().lines[:40])


def test_the_wait_before_looking_is_a_number_and_nothing_else() -> None:
    assert "\nWAIT_S=7 " in HostSurvey().command(wait_s=7)
    with pytest.raises(ValueError, match="invalid literal"):
        HostSurvey().command(wait_s="7; touch /x")  # type: ignore[arg-type]


def test_bytes_that_are_no_text_end_no_survey(shell: list[str], tmp_path: Path) -> None:
    """A name in Latin-1 in one file; in the file that is written anew it is no loss, but said."""
    (tmp_path / "daemon.json").write_bytes(b'{"label": "caf\xe9"}\n')
    (tmp_path / "os-release").write_bytes(b"ID=debian\nNAME=caf\xe9\n")
    script = HostSurvey().command()
    for path in ("/etc/docker/daemon.json", "/etc/os-release"):
        script = script.replace(path, str(tmp_path / path.rpartition("/")[2]))
    done = subprocess.run([*shell, "-c", script], capture_output=True, timeout=60, check=True)
    survey = HostSurvey().process(done.stdout.decode("utf-8").splitlines())
    assert survey["docker"]["daemon_json"] == {"unreadable": f"{tmp_path}/daemon.json is no UTF-8 text"}
    system = known(survey["os"])
    assert system is not None and system["id"] == "debian"
