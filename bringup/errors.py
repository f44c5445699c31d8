"""The two kinds of error that people see as one sentence. Anything else that is raised is our bug."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """What the user gave is wrong (a setting, a file, an argument): one sentence with the value at fault and the next step."""


class HostError(Exception):
    """What is wrong on one host, in one sentence with the next step. It fails that host and no other."""


def wrong(key: str, value: object, wanted: str) -> UserError:
    """The error of a setting: its name, its value, and what it must be."""
    return UserError(f"{key} is {value!r}: {wanted}")


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing where nothing is near."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
