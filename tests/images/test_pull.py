"""Attempts of a pull: what is tried again and after what time, what is not, and a host that is lost. The host is stood in for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gevent
import pytest

from bringup import catalog
from bringup.policy.images import how_pulled
from bringup.pull_errors import fault
from bringup.pulls import BACK_OFF_S, STALL_S
from bringup.settings import read_settings
from operations import image_pull
from operations.image_board import BOARD
from operations.image_pull import LOST_S, pull
from operations.image_scripts import LOOK, PULL, STOP

PULLING = how_pulled(read_settings({}), catalog.load(), ())
TAG = "registry.example/train:7"
RESET = 'error {"errorDetail":{"message":"read: connection reset by peer"},"error":"read: connection reset by peer"}'
DENIED = 'error {"message":"denied: requested access to the resource is denied"}'


class Stand:
    """A host whose looks answer one after the other, the last one for ever; its clock goes by what is waited for."""

    name = "gpu-1"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[tuple[bool, str]] = []
        self.waits: list[float] = []
        self.started = self.stopped = 0
        self.clock, self.look_takes = 1000.0, 1.0
        monkeypatch.setattr(image_pull, "shell", SimpleNamespace(run=self.run))
        monkeypatch.setattr(image_pull, "gevent", SimpleNamespace(sleep=self.sleep))
        monkeypatch.setattr(image_pull, "time", SimpleNamespace(monotonic=lambda: self.clock))
        monkeypatch.setattr(image_pull, "explained", lambda said, reference, pulling, arch: fault(said, reference))

    def run(self, host: object, script: str, *arguments: str, **more: object) -> tuple[bool, str]:
        if script == PULL:
            self.started += 1
            return True, "started"
        if script == STOP:
            self.stopped += 1
            return True, ""
        assert script == LOOK or "docker pull" in script
        self.clock += self.look_takes
        return (self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]) if script == LOOK else (False, "")

    def sleep(self, seconds: float) -> None:
        self.clock += seconds
        if seconds > 1:
            self.waits.append(seconds)

    def log(self, *arguments: object) -> None: ...

    def pull(self) -> str | None:
        return pull(self, TAG, PULLING, "x86_64", None)  # type: ignore[arg-type]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    yield Stand(monkeypatch)
    assert BOARD.now == {} and BOARD.waiting == 0


def test_an_image_that_comes_is_there(host: Stand) -> None:
    host.looks = [(True, "progress 3 1 1500 6000 "), (True, "progress 3 3 6000 6000 unpacking\npulled")]
    assert host.pull() is None and (host.started, host.waits) == (1, [])


def test_what_passes_is_tried_again_after_longer_and_longer(host: Stand) -> None:
    host.looks = [(True, RESET)]
    assert "cannot be reached" in str(host.pull())
    assert (host.started, host.waits) == (len(BACK_OFF_S) + 1, list(BACK_OFF_S))
    host.looks, host.waits = [(True, RESET), (True, "pulled")], []
    assert host.pull() is None and host.waits == [BACK_OFF_S[0]]


def test_what_does_not_pass_is_not_tried_again(host: Stand) -> None:
    host.looks = [(True, DENIED)]
    assert "(403)" in str(host.pull()) and (host.started, host.waits) == (1, [])


def test_a_pull_that_does_not_get_on_is_given_up_and_tried_again(host: Stand) -> None:
    host.looks, host.look_takes = [(True, "progress 3 1 1500 6000 ")], 20.0
    began = host.clock
    assert f"nothing came for {STALL_S} s" in str(host.pull())
    assert host.stopped == host.started == len(BACK_OFF_S) + 1
    assert host.clock - began < (STALL_S + 45) * host.started + sum(BACK_OFF_S)


def test_a_host_that_is_lost_ends_its_pull_and_the_registry_is_not_blamed(host: Stand) -> None:
    host.looks = [(True, "progress 3 1 1500 6000 "), (False, "TimeoutError: timed out")]
    began = host.clock
    said = str(host.pull())
    assert said.startswith(f"no answer from the host for {LOST_S} s while it pulled {TAG}") and "registry" not in said.replace(
        TAG, ""
    )
    assert host.clock - began < LOST_S + 10 and host.started == 1


def test_an_answer_that_is_missing_for_a_while_ends_nothing(host: Stand) -> None:
    host.looks = [(False, "")] * 20 + [(True, "pulled")]
    assert host.pull() is None and host.started == 1


def test_no_more_hosts_pull_at_once_than_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    now: list[int] = []
    most = 0

    def attempt(*arguments: object) -> None:
        nonlocal most
        now.append(1)
        most = max(most, len(now))
        gevent.sleep(0.01)
        now.pop()

    monkeypatch.setattr(image_pull, "_attempt", attempt)
    host: Any = SimpleNamespace(name="gpu")
    pulling = replace(PULLING, parallel=3)
    gevent.joinall([gevent.spawn(pull, host, TAG, pulling, "x86_64", None) for _ in range(10)], raise_error=True)
    assert most == 3
