"""The two kinds of error that people see as one sentence. Anything else that is raised is our bug."""

from __future__ import annotations


class UserError(Exception):
    """What the user gave is wrong (a setting, a file, an argument): one sentence with the value at fault and the next step."""


class HostError(Exception):
    """What is wrong on one host, in one sentence with the next step. It fails that host and no other."""
