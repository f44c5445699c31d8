"""What is shown of pulls while they go on: in place on a terminal, as plain lines without one."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import struct
import termios
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest
from pyinfra import logger

from bringup.pulls import Progress
from operations import image_board
from operations.image_board import Board

WIDTH = 60


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TextIO, int]]:
    """(a stream that is a terminal of WIDTH columns, the end at which it is read)."""
    monkeypatch.setattr(image_board, "LOOK_S", 0.0)
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 25, WIDTH, 0, 0))
    with os.fdopen(writing, "w") as stream:
        yield stream, reading
    os.close(reading)


@pytest.fixture
def board(terminal: tuple[TextIO, int]) -> Iterator[Board]:
    made = Board(terminal[0])
    yield made
    logger.removeHandler(made)


def host(name: str) -> Any:
    return SimpleNamespace(name=name)


def rendered(terminal: tuple[TextIO, int]) -> list[str]:
    """The lines of a terminal after what was written; it knows the control sequences that the board uses."""
    terminal[0].flush()
    text = ""
    while select.select([terminal[1]], [], [], 0.1)[0]:
        text += os.read(terminal[1], 65536).decode()
    lines, row = [""], 0
    for part in text.replace("\r\n", "\n").split("\033["):
        if part[:1].isdigit():
            row -= int(part[0])
            part = part[2:]
        elif part[:1] in "JK" and part:
            lines[row] = ""
            if part[0] == "J":
                del lines[row + 1 :]
            part = part[1:]
        for piece in part.replace("\r", "").splitlines(keepends=True):
            lines[row] += piece.rstrip("\n")
            if piece.endswith("\n"):
                row += 1
                lines += [""] * (row + 1 - len(lines))
    return lines


def test_a_line_a_host_is_written_over_and_no_longer_than_the_terminal(board: Board, terminal: tuple[TextIO, int]) -> None:
    for got in (100_000_000, 200_000_000):
        for name in ("gpu-1", "gpu-2"):
            board.show(host(name), "a:1", Progress(7, 1, got, 1_000_000_000), 5e7)
    lines = rendered(terminal)
    assert len(lines) == 3 and lines[0].startswith("    [gpu-1] pulling") and lines[1].startswith("    [gpu-2] pulling")
    assert "200.0 MB" in lines[0] and "200.0 MB" in lines[1] and max(map(len, lines)) < WIDTH


def test_what_others_write_is_not_written_over(board: Board, terminal: tuple[TextIO, int]) -> None:
    board.show(host("gpu-1"), "a:1", Progress(7, 1, 100_000_000, 1_000_000_000), 5e7)
    logger.warning("[gpu-2] something of another host")
    terminal[0].write("[gpu-2] something of another host\n")  # as pyinfra does
    board.show(host("gpu-1"), "a:1", Progress(7, 1, 300_000_000, 1_000_000_000), 5e7)
    lines = rendered(terminal)
    assert "100.0 MB" in lines[0] and lines[1] == "[gpu-2] something of another host" and "300.0 MB" in lines[2]


def test_a_host_that_has_its_image_is_shown_no_more_and_those_that_wait_are_counted(
    board: Board, terminal: tuple[TextIO, int]
) -> None:
    board.waiting = 3
    for name in ("gpu-1", "gpu-2"):
        board.show(host(name), "a:1", Progress(7, 1, 100_000_000, 1_000_000_000), 5e7)
    board.leave(host("gpu-1"))
    board.show(host("gpu-2"), "a:1", Progress(7, 2, 300_000_000, 1_000_000_000), 5e7)
    lines = rendered(terminal)
    assert len(lines) == 3 and "gpu-2" in lines[0] and "3 more wait for their turn" in lines[1] and lines[2] == ""


def test_many_hosts_are_one_line(board: Board, terminal: tuple[TextIO, int]) -> None:
    for number in range(12):
        board.show(host(f"gpu-{number}"), "a:1", Progress(7, 1, 500 if number else 10, 1000), 5e6)
    lines = rendered(terminal)
    assert len(lines) == 2 and lines[0].startswith("    pulling on 12 hosts: 46%")


def test_without_a_terminal_lines_are_plain_and_few(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    stream = io.StringIO()
    board = Board(stream)
    logger.addHandler(caplog.handler)
    try:
        with caplog.at_level("INFO", logger="pyinfra"):
            for _ in range(5):
                board.show(host("gpu-1"), "a:1", Progress(7, 1, 500, 1000), 5e6)
    finally:
        logger.removeHandler(caplog.handler)
    assert stream.getvalue() == "" and {each.getMessage() for each in caplog.records} == {
        "[gpu-1] pulling a:1: 0 kB of 1 kB, 1 of 7 layers, 5.0 MB/s, 0 s left"
    }
