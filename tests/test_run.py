"""A whole run on @fake hosts through pyinfra's API: what is sent to which host, and how often."""

from __future__ import annotations

import contextlib
import json
import runpy
from collections import Counter
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.deploy import add_deploy
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops
from pyinfra.api.state import StateStage
from pyinfra.connectors.fake import FakeConnector

from bringup.plan import STEP_IDS
from bringup.report import HostResult
from deploys import ending, frame
from facts import live
from operations import driver as driver_operations
from operations.record import RUN
from tests.fakes import IN_PLACE, INDEX, LIMITS, LOCK, LOGIN, SMI, STARTUP, SURVEY, data, offered, started
from tests.surveys import converged, fresh

DEPLOYS = Path(__file__).parent.parent / "deploys"
STAGES = ("preflight", "kernel", "driver", "limits", "container_runtime", "images", "verify")


@pytest.fixture(autouse=True)
def own_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is a process: what one remembers must not reach the next test."""
    monkeypatch.setattr(ending, "_registered", True)  # no summary when pytest ends
    monkeypatch.setattr(frame, "_plans", {})
    monkeypatch.setattr(RUN, "results", {})
    monkeypatch.setattr(frame, "datetime", SimpleNamespace(now=lambda tz: datetime(2026, 11, 30, tzinfo=tz)))


def run(hosts: dict[str, dict[str, Any]], stages: tuple[str, ...] = STAGES, execute: bool = True) -> State:
    """Prepare, and execute: each stage file is executed for each host, as pyinfra's command does."""
    state = State(Inventory(([(f"@fake/{name}", given) for name, given in hosts.items()], {})), Config())
    state.set_stage(StateStage.Connect)
    connect_all(state)
    state.set_stage(StateStage.Prepare)
    for name in stages:
        add_deploy(state, lambda path=str(DEPLOYS / f"{name}.py"): runpy.run_path(path))
    if execute:
        state.set_stage(StateStage.Execute)
        with contextlib.suppress(PyinfraError):  # "No hosts remaining!"
            run_ops(state)
    for host in state.inventory:
        ending.complete(state, host)
    return state


def result(name: str) -> HostResult:
    return RUN.results[f"@fake/{name}"]


def sent(state: State, name: str) -> list[str]:
    host = state.inventory.get_host(f"@fake/{name}")
    assert host is not None and isinstance(host.connector, FakeConnector)
    return host.connector.executed_commands


def kinds(commands: list[str]) -> Counter[str]:
    """How many of each of our scripts; everything else is a `change`."""
    marks = (SURVEY, LOCK, SMI, STARTUP, LIMITS, INDEX, IN_PLACE, LOGIN)
    return Counter(next((mark for mark in marks if mark in each), "change") for each in commands)


def test_two_converged_hosts_are_both_proven_and_nothing_is_sent_but_three_surveys_and_the_proof() -> None:
    state = run({"one": data(converged()), "two": data(converged("debian13"))})
    for name in ("one", "two"):
        found = result(name)
        assert (found.ended, found.function, found.problems, found.changed) == ("done", "proven", [], [])
        assert kinds(sent(state, name)) == {SURVEY: 3, SMI: 1, STARTUP: 1, LIMITS: 1, IN_PLACE: 1, LOGIN: 1}
    assert state.failed_hosts == set()


def test_every_host_gets_every_operation_in_the_order_of_the_plan() -> None:
    """Operations whose hosts differ are merged wrongly by pyinfra (pyinfra-pattern, pitfall 3): the operation decides, not the deploy."""
    state = run(
        {"settled": data(converged()), "new": data(fresh()), "plain": data(fresh("debian13", []), gpu_expected_count=0)},
        execute=False,
    )
    names = [ending.step_name(state, each) for each in state.get_op_order()]
    assert all(set(state.ops[host]) == set(state.get_op_order()) for host in state.inventory)
    assert len(names) == len(set(names))
    assert [each for each in names if each in STEP_IDS] == [each for each in STEP_IDS if each in names]
    assert set(STEP_IDS) <= set(names), "a step without an operation is planned and never done"


def test_a_preview_sends_nothing_but_one_survey_and_shows_the_steps_as_changes() -> None:
    state = run({"new": data(fresh()), "settled": data(converged())}, execute=False)
    assert kinds(sent(state, "new")) == kinds(sent(state, "settled")) == {SURVEY: 1}
    host = state.inventory.get_host("@fake/new")
    assert host is not None
    changing = {ending.step_name(state, op_hash) for op_hash, each in state.ops[host].items() if each.operation_meta.will_change}
    assert changing == {each["step"] for each in result("new").planned}
    assert "reboot" in changing and result("new").ended == "planned" and result("settled").planned == []


def test_one_hosts_trouble_is_its_own() -> None:
    state = run(
        {
            "fine": data(converged()),
            "refused": data(converged().set("daemon_json", "{oops")),
            "cut": data(converged().lines[:40]),
            "unlike": data(["sudo: a password is required"]),
            "mute": data([]),
            "failing": data(fresh()),
        }
    )
    assert {name: result(name).ended for name in ("fine", "refused", "cut", "unlike", "mute", "failing")} == {
        "fine": "done", "refused": "refused", "cut": "failed", "unlike": "failed", "mute": "failed", "failing": "failed",
    }  # fmt: skip
    assert result("fine").function == "proven"
    assert {host.name for host in state.failed_hosts} == {
        f"@fake/{each}" for each in ("refused", "cut", "unlike", "mute", "failing")
    }
    for name in ("refused", "cut", "unlike", "mute"):
        assert set(kinds(sent(state, name))) <= {SURVEY}, "something was done on a host that was left out"
        assert len(result(name).problems) == 1 and result(name).function != "proven"
    assert "daemon.json is not JSON" in result("refused").problems[0]


def test_a_host_that_lets_us_in_and_does_not_answer_is_left_out_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "ANSWER_S", 1)
    with gevent.Timeout(30):
        run({"fine": data(converged()), "hung": data(converged(), fake_delay=3600)})
    assert (result("fine").function, result("hung").ended) == ("proven", "failed")
    assert "did not answer within 1 s" in result("hung").problems[0] and len(result("hung").problems) == 1


def test_where_sudos_password_cannot_be_made_ready_that_host_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyinfra raises what would else be a traceback, and the end of the run for all."""

    def full(self: FakeConnector, *given: Any, **more: Any) -> Any:
        raise PyinfraError("Failed to create sudo_askpass command: no space left on device")

    monkeypatch.setattr(FakeConnector, "run_shell_command", full)
    run({"full": data(converged())}, execute=False)
    assert result("full").problems == [
        "sudo's password could not be made ready on the host: Failed to create sudo_askpass command: no space left on device"
    ]


def test_a_failing_operation_is_named_and_nothing_comes_after_it() -> None:
    """The fake host has no repository to answer with."""
    state = run({"failing": data(fresh())})
    found = result("failing")
    assert found.problems[0].startswith(
        "package-sources: the repository https://mirror.example/nvidia-driver/ could not be looked at"
    )
    assert found.function == "not proven" and found.changed == []
    assert not any("apt-get -q -y" in each for each in sent(state, "failing"))


LACKING = [
    ("version", offered(), {"gpu_driver_branch": "580.999.99"}, "has no driver 580.999.99: the nearest there is 580."),
    ("packages", [each for each in offered() if not each.startswith("version")], {}, "has no nvidia-driver-cuda, "),
]


@pytest.mark.parametrize("stages", [STAGES, ("driver",)], ids=["whole", "stage alone"])
@pytest.mark.parametrize(("index", "settings", "said"), [each[1:] for each in LACKING], ids=[each[0] for each in LACKING])
def test_a_source_without_what_is_wanted_is_found_before_anything_is_changed(
    stages: tuple[str, ...], index: list[str], settings: dict[str, Any], said: str
) -> None:
    state = run({"new": data(fresh(), index=index, **settings)}, stages)
    assert said in result("new").problems[0] and result("new").changed == []
    assert kinds(sent(state, "new"))["change"] == 0


def test_the_lock_is_taken_once_before_the_first_change_and_given_back() -> None:
    commands = sent(run({"failing": data(fresh(), index=offered())}), "failing")
    order = [each for each in commands if SURVEY not in each and INDEX not in each]
    assert LOCK in order[0] and "rm -rf /run/gpu-bringup.lock" in order[-1]
    assert sum(LOCK in each for each in order) == 1


def test_a_host_that_another_run_works_on_is_left_alone_and_its_holder_named() -> None:
    state = run({"busy": data(fresh(), index=offered(), lock="60 2026-run elsewhere/abc/7"), "fine": data(converged())})
    assert (
        "another run holds /run/gpu-bringup.lock: run 2026-run from elsewhere (process 7), since 60 s"
        in result("busy").problems[0]
    )
    assert kinds(sent(state, "busy"))["change"] == 0 and result("fine").function == "proven"


def test_an_internal_error_fails_its_host_alone_and_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("boom")

    hosts = {"new": data(fresh(), index=offered()), "fine": data(converged())}
    monkeypatch.setattr(driver_operations, "write_file", breaks)
    run(hosts)
    assert result("new").ended == "failed" and "internal error in nouveau_out: KeyError: 'boom'" in result("new").problems[0]
    assert result("fine").function == "proven"


NOT_PROVEN = [
    (
        {"smi": "exit 125\ndocker: Error response from daemon: unresolvable CDI devices nvidia.com/gpu=all"},
        "unresolvable CDI devices",
    ),
    ({"smi": ""}, "gpus-in-container: the host did not answer"),
    ({"startup": "problem Error response from daemon: no such image"}, "cuda-kernel: no such image"),
    (
        {"startup": started({"stage": "cu_init", "error": "RuntimeError: cuInit returned 803"})},
        "cu_init: RuntimeError: cuInit returned 803",
    ),
]


@pytest.mark.parametrize(("instead", "said"), NOT_PROVEN, ids=[said for _, said in NOT_PROVEN])
def test_verify_alone_changes_nothing_and_names_what_is_missing(instead: dict[str, Any], said: str) -> None:
    state = run({"bad": data(converged("debian13"), **instead), "good": data(converged())}, stages=("verify",))
    bad = result("bad")
    assert (bad.ended, bad.function, bad.changed) == ("failed", "not proven", []) and said in bad.problems[0]
    assert kinds(sent(state, "bad"))["change"] == 0 and LOCK not in str(sent(state, "bad"))
    assert result("good").function == "proven" and [host.name for host in state.failed_hosts] == ["@fake/bad"]


def test_sabotage_behind_our_back_is_not_proven() -> None:
    run({"gone": data(converged("debian13").set("cdi", ""))}, stages=("verify",))
    assert "cdi-spec: no CDI spec for nvidia.com/gpu" in result("gone").problems[0]


def test_where_a_reboot_is_not_allowed_the_host_ends_not_proven_with_reboot_pending() -> None:
    host = converged().set("module_version", "580.178.04").set("gpu_processes", "4711, python3")
    state = run({"pending": data(host, gpu_reboot="never")}, stages=("driver", "verify"))
    assert "reboot-pending: driver 580.159.04 is loaded, 580.178.04 is installed" in result("pending").problems[0]
    assert not any("systemctl reboot" in each for each in sent(state, "pending"))


def test_a_busy_host_is_not_rebooted() -> None:
    host = converged().set("module_version", "580.178.04").set("docker_running", "abc training user/image")
    state = run({"busy": data(host)}, stages=("driver", "verify"))
    assert not any("systemctl reboot" in each for each in sent(state, "busy")) and result("busy").function == "not proven"


def test_what_we_held_and_should_not_is_released_and_forgotten() -> None:
    host = converged().set("held_by_us", "libcuda1\nnvidia-driver-cuda")
    state = run({"freed": data(host, gpu_hold_packages="none")}, stages=("container_runtime",))
    changes = [each for each in sent(state, "freed") if SURVEY not in each]
    commands = [each for each in changes if "apt-mark" in each or "gpu-bringup/held" in each]
    assert ["apt-mark unhold libcuda1 nvidia-driver-cuda" in each for each in commands] == [True, False]
    assert "/etc/gpu-bringup/held.gpu-bringup-new" in commands[1]


def test_containers_live_through_a_restart_of_docker_and_in_a_swarm_are_not_stopped_unless_the_user_accepts_it() -> None:
    host = converged().set("daemon_json", "{}").set("docker_running", "abc training user/image")
    info = json.loads("".join(host.sections["docker_info"][1]))
    swarm = host.set("docker_info", json.dumps({**info, "Swarm": {"LocalNodeState": "active"}}))
    given = {"kept": data(host), "asked": data(swarm), "accepted": data(swarm, gpu_accept=["stop-containers"])}
    state = run(given, stages=("container_runtime",))
    assert "would end training" in result("asked").problems[0]
    assert not any("restart docker" in each for each in sent(state, "asked"))
    assert any("restart docker" in each for each in sent(state, "accepted"))
    (lent,) = (each for each in sent(state, "kept") if "restart docker" in each)
    assert " lend " in lent
