"""A container that runs must keep its GPU: the kept result is judged, and the script that makes it is run with fake tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bringup import verdicts
from bringup.survey import Read
from bringup.survival import Subject, survival_checks
from facts.in_container import script
from operations import survival
from tests.test_facts import sh

IMAGE = "registry.example/torch:2@sha256:" + "1" * 64
NOW: Subject = {"boot_id": "b-1", "driver": "580.159.04", "docker": "26.1.5", "injection": "cdi", "image": IMAGE}
GOOD = {"failed": None, "gpus": ["NVIDIA H200"]}
LOST = {"failed": {"stage": "cu_init", "error": "RuntimeError: cuInit returned 100"}, "gpus": []}
Step = dict[str, Any]


def kept(*steps: Step, **values: Any) -> str:
    return json.dumps({"schema": 2, "made_at": 1, "of": {**NOW, **values.pop("of", {})}, "steps": steps, **values})


def step(after: str, probe: object = GOOD, **more: Any) -> Step:
    return {"after": after, "exit": 0, "probe": probe, "said": "", **more}


def judged(text: Read[str], wanted: tuple[str, ...] = ("daemon-reload",)) -> tuple[str, str]:
    (check,) = survival_checks(text, NOW, wanted)
    assert verdicts.function([check]) == ("proven" if check.status == "pass" else "not proven")
    return check.status, check.detail


def test_the_same_kernel_before_and_after_is_a_pass() -> None:
    assert judged(kept(step("start"), step("daemon-reload")))[0] == "pass"


def test_a_level_that_asks_for_none_has_no_check() -> None:
    assert survival_checks(None, NOW, ()) == []


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([step("start"), step("daemon-reload", LOST)], "cuInit returned 100; systemd took the GPU's devices"),
        ([step("start"), step("daemon-reload", None, exit=137, said="Killed")], "exit 137"),
        ([step("start"), step("daemon-reload", {"failed": None, "gpus": []})], "saw no GPU"),
        ([step("start", LOST), step("daemon-reload")], "before anything was disturbed"),
        ([step("start", None, exit=125, said="docker: unresolvable CDI devices")], "unresolvable CDI devices"),
        ([], "before anything was disturbed: it was not tried"),
    ],
)
def test_a_gpu_that_was_lost_is_named_with_its_cause(steps: list[Step], said: str) -> None:
    status, detail = judged(kept(*steps))
    assert status == "fail" and said in detail


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "not tried yet"),
        (kept(step("start")), "not tried yet"),
        ({"unreadable": "no permission"}, "no permission"),
        ("{half", "is broken"),
        ("[]", "is broken"),
        ('{"schema": 2, "of": [], "steps": []}', "is broken"),
        ('{"schema": 2, "of": {}, "steps": ["x"]}', "is broken"),
        (kept(step("start"), step("daemon-reload"), schema=9), "another version than schema 2"),
        (kept(step("start"), step("daemon-reload"), of={"boot_id": "b-0"}), "another boot (b-0, now b-1)"),
        (kept(step("start"), step("daemon-reload"), of={"driver": "570.1"}), "another driver (570.1, now 580.159.04)"),
        (kept(step("start"), step("daemon-reload"), of={"docker": None}), "another docker (None, now 26.1.5)"),
        (kept(step("start"), step("daemon-reload"), of={"image": "other:1"}), "another image"),
        (kept(step("start"), step("daemon-reload"), of={"image": IMAGE[:-1] + "2"}), "another image"),
    ],
)
def test_what_was_not_tried_on_this_boot_is_skipped_and_no_pass(text: Read[str], said: str) -> None:
    status, detail = judged(text)
    assert status == "skipped" and said in detail


def test_a_tag_whose_digest_this_run_did_not_ask_for_is_the_image_that_was_tried() -> None:
    assert judged(kept(step("start"), step("daemon-reload"), of={"image": IMAGE.partition("@")[0]}))[0] == "pass"


def test_without_live_restore_docker_is_not_restarted_and_that_is_said() -> None:
    text = kept(step("start"), {"after": "docker-restart", "skipped": "live-restore is off"})
    assert judged(text, ("docker-restart",)) == ("skipped", "live-restore is off")


DOCKER = """case $1 in
exec) cat >/dev/null; echo noise; [ -e reloaded ] && echo '%s' || echo '{"failed": null, "gpus": ["a"]}' ;;
info) echo %s ;;
run) [ ! -e refuse ] || { echo 'docker: "no" \\ way' >&2; exit 125; } ;;
esac"""


def tried(folder: Path, after: object, live_restore: str = "true") -> dict[str, Any]:
    text = survival.SCRIPT.replace("/var/lib/gpu-bringup", str(folder / "kept"))
    command = script(text, IMAGE, "cdi", "probe", "daemon-reload docker-restart", json.dumps(NOW))
    sh(
        command,
        folder,
        docker=DOCKER % (json.dumps(after), live_restore),
        systemctl="touch reloaded; echo $* >>systemctl",
        sleep="",
    )
    found: dict[str, Any] = json.loads((folder / "kept" / "proof.json").read_text())
    return found


def test_the_script_keeps_what_each_step_gave(tmp_path: Path) -> None:
    found = tried(tmp_path, LOST)
    assert [each["after"] for each in found["steps"]] == ["start", "daemon-reload", "docker-restart"]
    assert [bool(each["probe"]["failed"]) for each in found["steps"]] == [False, True, True]
    assert found["of"] == NOW and found["schema"] == 2
    assert (tmp_path / "systemctl").read_text() == "daemon-reload\nrestart docker\n"


def test_the_script_restarts_docker_only_with_live_restore(tmp_path: Path) -> None:
    found = tried(tmp_path, GOOD, live_restore="false")
    assert "live-restore is off" in found["steps"][2]["skipped"]
    assert (tmp_path / "systemctl").read_text() == "daemon-reload\n"


def test_a_container_that_does_not_start_is_kept_as_json_whatever_docker_said(tmp_path: Path) -> None:
    (tmp_path / "refuse").touch()
    (only,) = tried(tmp_path, GOOD)["steps"]
    assert (only["exit"], only["probe"]) == (125, None) and "way" in only["said"]
