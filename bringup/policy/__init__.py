"""What a host shall be: the policy of the project, one subject a file. Pure functions that return a part of the target or raise Refused."""

from __future__ import annotations


class Refused(Exception):
    """Why this host cannot be planned for, and the way out. `accept`: the word for gpu_accept that overrides it."""

    def __init__(self, id: str, reason: str, way_out: str, accept: str | None = None) -> None:
        super().__init__(reason)
        self.id, self.reason, self.way_out, self.accept = id, reason, way_out, accept
