"""A connection whose host does not answer is ended; one whose host answers is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent
import pytest
from paramiko import SSHException

from facts import connection


class Line:
    """As much of paramiko's Transport as is asked."""

    def __init__(self, answer: Callable[[], None]) -> None:
        self.answer, self.open, self.asked = answer, True, 0

    def is_active(self) -> bool:
        return self.open

    def close(self) -> None:
        self.open = False

    def global_request(self, kind: str, wait: bool) -> None:
        assert wait, "what is not waited for tells nothing of a frozen server"
        self.asked += 1
        self.answer()


def frozen() -> None:
    gevent.sleep(60)


def slow() -> None:
    gevent.sleep(0.1)


def broken() -> None:
    raise SSHException("SSH session not active")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ASK_EVERY_S", 0.01)
    monkeypatch.setattr(connection, "ANSWER_S", 1)


def test_a_server_that_does_not_answer_is_given_up() -> None:
    line = Line(frozen)
    with gevent.Timeout(5):
        connection._watch(line)  # type: ignore[arg-type]
    assert not line.open and line.asked == 1


@pytest.mark.parametrize("answer", [slow, broken])
def test_a_server_that_answers_late_is_kept_and_a_broken_connection_is_left_to_end(answer: Callable[[], None]) -> None:
    line = Line(answer)
    watching = gevent.spawn(connection._watch, line)
    gevent.sleep(0.5)
    assert line.open and line.asked >= 2
    line.close()
    watching.join(timeout=5)
    assert watching.successful(), "the watch goes on after the connection has ended"


def test_seconds_in_which_this_process_was_held_up_do_not_count() -> None:
    answering = gevent.spawn(gevent.sleep, 0.5)
    gevent.spawn(time.sleep, 2.5)  # as a question for a password: nothing else runs meanwhile
    assert connection.answered(answering, 1)


def test_a_limit_is_kept() -> None:
    began = time.monotonic()
    assert not connection.answered(gevent.spawn(gevent.sleep, 60), 1)
    assert time.monotonic() - began < 10
