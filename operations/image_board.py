"""What hosts pull now, for one who watches: a line a host, or one for all of them; in place on a terminal, now and then without one."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from pyinfra import logger
from pyinfra.api import Host
from typing_extensions import override

from bringup.pulls import Progress, fleet_line, host_line

LOOK_S = 1.0  # between lines on a terminal
SAY_S = 10.0  # and without one
TOO_MANY = 4  # hosts, more than have a line each


class Board(logging.Handler):
    """As a handler of pyinfra's log it sees what others write: only its own lines are written over.

    pyinfra's spinner has the terminal's last line, which it clears before and draws anew after whatever is written.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self.now: dict[str, tuple[str, Progress, float]] = {}  # host -> image, how far, bytes a second
        self.waiting = 0
        self._stream = stream
        self._said_at = 0.0
        self._above = 0  # lines of ours right above the spinner

    def show(self, host: Host, reference: str, progress: Progress, speed: float) -> None:
        self.now[host.name] = (reference, progress, speed)
        stream = self._stream or sys.stderr
        terminal = stream.isatty()
        if time.monotonic() - self._said_at < (LOOK_S if terminal else SAY_S):
            return
        self._said_at = time.monotonic()
        if terminal:
            self._draw(stream)
        else:
            for line in self.lines():
                logger.info(line)

    def _draw(self, stream: TextIO) -> None:
        if self not in logger.handlers:
            logger.addHandler(self)
        width = os.get_terminal_size(stream.fileno()).columns or 80
        lines = [f"    {each}"[: width - 1] for each in self.lines()]  # one that wraps could not be written over
        back = f"\033[{self._above}A\r\033[J" if self._above else "\r\033[K"
        stream.write(back + "".join(f"{each}\n" for each in lines))
        stream.flush()
        self._above = len(lines)

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._above = 0

    def lines(self) -> Iterator[str]:
        if len(self.now) <= TOO_MANY:
            yield from (f"[{name}] {host_line(*each)}" for name, each in self.now.items())
            if self.waiting:
                yield f"{self.waiting} more wait for their turn (gpu_pull_parallel)"
        else:
            yield fleet_line(
                {name: each for name, (_, each, _) in self.now.items()},
                self.waiting,
                sum(speed for _, _, speed in self.now.values()),
            )

    def leave(self, host: Host) -> None:
        self.now.pop(host.name, None)


BOARD = Board()
