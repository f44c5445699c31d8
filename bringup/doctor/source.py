"""One text and where it is from."""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE = "message"


@dataclass(frozen=True)
class Source:
    """Where a text is from: `/etc/docker/daemon.json`, `$ uname -r` (normalised), or `message`."""

    name: str
    text: str
