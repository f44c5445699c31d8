"""`bringup plan`: surveys as people have them, several hosts at once, exit codes, and one sentence for what is wrong with the input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bringup.cli import main
from bringup.survey import SCHEMA
from tests.machines import machine
from tests.surveys import converged, fresh

FACT = "facts.survey.HostSurvey"
GOOD: Any = fresh("debian12").survey
TODAY = ("--today", "2026-11-30")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    code = main(["plan", *arguments, *TODAY])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def written(folder: Path, value: object) -> str:
    path = folder / "surveys.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


HOSTS = {
    "one": GOOD,
    "two": machine("ubuntu22.04 8 x h100 + 4 x nvswitch").survey,
    "none": None,
    "old": machine("ubuntu24.04 k80").survey,
}


@pytest.mark.parametrize(
    ("hosts", "code"),
    [(["one"], 0), (["one", "two"], 0), (["one", "none"], 1), (["one", "old"], 3), (["one", "none", "old"], 3)],
    ids=lambda each: "+".join(each) if isinstance(each, list) else str(each),
)
def test_what_the_fact_of_several_hosts_printed(
    hosts: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(capsys, "--survey", written(tmp_path, {FACT: {name: HOSTS[name] for name in hosts}}))
    assert (found, err) == (code, "")
    rows = {line.split()[0] for line in out.splitlines() if not line.startswith(" ")}
    assert rows == {"host", *hosts}
    assert ("no survey: the host gave no survey" in out) == ("none" in hosts)
    assert ("refused (no-driver-for-gpu): Tesla K80" in out) == ("old" in hosts)
    assert ("only shown: Ubuntu 22.04 LTS is planned for, but no run on it was ever tried" in out) == ("two" in hosts)


def test_a_survey_from_standard_input_with_its_reasons(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\ufeff" + json.dumps({FACT: {"gpu-1": GOOD}})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    code, out, _ = run(capsys, "--survey", "-", "-v")
    assert code == 0
    for said in (
        "gpu-1  1 × H200 SXM 141GB  none loaded -> 580  none -> docker-ce",
        "driver-packages: install the open driver 580, because",
        "reboot (reboots): reboot, because nouveau holds the GPU",
        "proof (auto): a CUDA kernel on 1 GPUs in a container of docker.io/pytorch/pytorch:",
        "note: default runtime nvidia",
    ):
        assert said in out
    assert "1        20" in out.splitlines()[1]


def test_a_single_survey_without_a_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--survey", written(tmp_path, GOOD))
    assert code == 0 and out.splitlines()[1].startswith("-     1 × H200")


def test_json_has_targets_steps_and_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--survey", written(tmp_path, {FACT: HOSTS}), "--json")
    found = json.loads(out)
    assert code == 3 and set(found) == set(HOSTS)
    plan = found["one"]["plan"]
    assert set(plan) == {"target", "steps", "skipped", "notes", "provisional", "only_shown"}
    assert plan["target"]["driver"]["wanted"] == "580" and plan["only_shown"] is None
    assert (
        set(plan["steps"][0]) == {"id", "why", "what", "reboots"} and [each["reboots"] for each in plan["steps"]].count(True) == 1
    )
    assert found["two"]["plan"]["only_shown"]["accept"] == "untried-distribution"
    assert found["old"]["refusal"]["id"] == "no-driver-for-gpu" and set(found["old"]["refusal"]) == {
        "id",
        "reason",
        "way_out",
        "accept",
    }
    assert found["none"] == {"error": "the host gave no survey"}


SET = [  # arguments of --set, the branch of the driver then
    ((), "580"),
    (("gpu_driver_branch=lts",), "620"),
    (("gpu_driver_branch=595",), "595"),
    (('gpu_driver_branch="580.178.04"',), "580.178.04"),
    (("gpu_driver_branch=580.95.05", 'gpu_accept=["below-security-floor"]'), "580.95.05"),
    (("gpu_driver_branch=595", "gpu_driver_branch=620"), "620"),
]


@pytest.mark.parametrize(("given", "branch"), SET, ids=[" ".join(given) or "nothing" for given, _ in SET])
def test_settings_on_the_command_line(
    given: tuple[str, ...], branch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--survey", written(tmp_path, GOOD), "--json", *(f"--set={each}" for each in given))
    assert (code, err) == (0, "") and json.loads(out)["-"]["plan"]["target"]["driver"]["wanted"] == branch


WRONG_SETTINGS = [
    ("gpu_driver_branch", "--set gpu_driver_branch: it must be KEY=VALUE"),
    ("gpu_drvier_branch=lts", "unknown setting gpu_drvier_branch; did you mean gpu_driver_branch?"),
    ("driver_branch=lts", "unknown setting driver_branch; did you mean gpu_driver_branch?"),
    ("gpu_driver_branch=580.10", "gpu_driver_branch is 580.1: a version must be given as text: put quotes around it"),
    ("gpu_driver_branch=newest", "it must be auto, lts, production, a branch such as 580"),
    ("gpu_expected_count=eight", "gpu_expected_count is 'eight': it must be a whole number of GPUs, 0 or more"),
    ("gpu_expected_count=8.0", "it must be a whole number of GPUs"),
    ("gpu_images=auto", "gpu_images is 'auto': it must be a list of texts"),
    ('gpu_images=["Not An Image"]', "gpu_images is 'Not An Image': it is no name of an image"),
    ("gpu_accept=[end-of-life]", "gpu_accept is '[end-of-life]': it must be a list of texts"),
    ('gpu_accept=["end-of-live"]', "did you mean end-of-life?"),
    ("gpu_docker_options=[1]", "gpu_docker_options is [1]: it must be a mapping"),
    ("gpu_kernel_module=opne", "did you mean open?"),
    ("gpu_reboot=true", "gpu_reboot is True: it must be one of if-idle, never, always"),
    ("gpu_require_floors=1", "gpu_require_floors is 1: it must be true or false"),
]


@pytest.mark.parametrize(("given", "said"), WRONG_SETTINGS, ids=[given for given, _ in WRONG_SETTINGS])
def test_a_wrong_setting_is_one_sentence_and_exit_2(
    given: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--survey", written(tmp_path, GOOD), "--set", given)
    assert (code, out) == (2, "") and err.startswith("bringup: ") and err.count("\n") == 1 and said in err


def changed(*path: str, value: object) -> dict[str, Any]:
    """The good survey of host gpu-1 with another value at a path; `value` is left out where it is `...`."""
    survey: Any = json.loads(json.dumps(GOOD))
    inner = survey
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return {FACT: {"gpu-1": survey}}


WHOLE = json.dumps({FACT: {"gpu-1": GOOD}})
BROKEN: list[tuple[str, object, str]] = [
    ("empty", "", "surveys.json is empty: save a survey with `pyinfra INVENTORY fact facts.survey.HostSurvey --json > FILE`"),
    ("blank", " \n\t", "surveys.json is empty"),
    ("cut off", WHOLE[: len(WHOLE) // 2], "surveys.json is not JSON (line 1, column"),
    ("cut off at its last brace", WHOLE[:-1], "is it cut off?"),
    ("the log of a run", "--> Loading config...\n--> Loading inventory...", "surveys.json is not JSON (line 1, column 1"),
    ("YAML", "gpu: h200\n", "surveys.json is not JSON"),
    ("nested without end", "[" * 100_000, "surveys.json is no survey: it is nested too deep"),
    ("a list", [GOOD], "surveys.json holds a list, not a survey"),
    ("a number", 7, "surveys.json holds a number, not a survey"),
    ("null", "null", "surveys.json holds nothing, not a survey"),
    ("another fact", {"server.Os": {"gpu-1": "Linux"}}, "surveys.json is no survey: it has the keys server.Os"),
    ("an empty object", {}, "surveys.json is no survey: it has the keys of nothing"),
    ("no host", {FACT: {}}, "surveys.json holds no host"),
    ("a host that says something else", {FACT: {"gpu-1": "Linux"}}, "surveys.json: gpu-1: this is no survey"),
    ("a newer schema", changed("schema", value=SCHEMA + 1), f"the survey has schema {SCHEMA + 1}, of a newer gpu-bringup; this one reads"),
    ("an older schema", changed("schema", value=0), "has schema 0, of an older gpu-bringup"),
    ("a schema in words", changed("schema", value="one"), "surveys.json: gpu-1: schema is 'one', not a number: take a new survey"),
    ("a schema that is true", changed("schema", value=True), "schema is True, not a number"),
    ("a field that is not known", changed("colour", value="green"), "surveys.json: gpu-1: colour is unknown: take a new survey"),
    ("an inner field that is not known", changed("docker", "colour", value=1), "surveys.json: gpu-1: docker.colour is unknown"),
    ("a field too few", changed("docker", "version", value=...), "surveys.json: gpu-1: docker.version is missing"),
    ("a number for a text", changed("arch", value=64), "surveys.json: gpu-1: arch is int, not str"),
    ("a text for a list", changed("pci", value="none"), "surveys.json: gpu-1: pci is str, not list"),
    ("null where there is always something", changed("kernel", value=None), "surveys.json: gpu-1: kernel is NoneType, not str"),
    ("true for a number", changed("clock_s", value=True), "surveys.json: gpu-1: clock_s is bool, not float"),
    ("a GPU that is cut off", changed("pci", value=[{"address": "0000:06:00.0"}]), "surveys.json: gpu-1: pci.0.vendor is missing"),
    ("half of an unreadable value", changed("os", value={"unreadable": 1}), "surveys.json: gpu-1: os"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"), [(content, said) for _, content, said in BROKEN], ids=[name for name, _, _ in BROKEN]
)
def test_a_broken_survey_is_one_sentence_with_file_and_key_and_exit_2(
    content: object, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "--survey", written(tmp_path, content))
    assert (code, out) == (2, "") and err.startswith("bringup: ") and err.count("\n") == 1
    assert said in err


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00\x01")
    for path, why in ((tmp_path / "gone", "No such file"), (tmp_path, "Is a directory"), (binary, "it is no UTF-8 text")):
        code, out, err = run(capsys, "--survey", str(path))
        assert (code, out) == (2, "") and f"{path} could not be read ({why}" in err and err.count("\n") == 1


def test_binary_on_standard_input_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    assert run(capsys, "--survey", "-") == (2, "", "bringup: standard input could not be read (it is no UTF-8 text)\n")


def test_the_day_of_a_plan_may_be_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--survey", written(tmp_path, GOOD), "--today", "2027-03-01"]) == 0
    assert "none loaded -> 620" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--survey", written(tmp_path, GOOD), "--today", "tomorrow"])
    assert ended.value.code == 2


def test_a_converged_host_has_nothing_to_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the settings that it was made with; one setting more is a change to its provenance."""
    survey: Any = converged("debian13").survey
    code, out, _ = run(capsys, "--survey", written(tmp_path, survey), "--set", "gpu_docker_source=distro")
    assert code == 0 and "driver-packages" not in out


def test_a_reader_that_has_enough_is_no_error() -> None:
    shown = subprocess.Popen(
        [sys.executable, "-m", "bringup", "doctor", "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert shown.stdout is not None and shown.stderr is not None
    shown.stdout.close()
    assert (shown.stderr.read(), shown.wait(timeout=60)) == (b"", 141)
    shown.stderr.close()
