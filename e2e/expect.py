"""What a scenario expects, and how it says that it found something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic, sleep


class Failed(Exception):
    """Something is not as it shall be: what was expected, what was found, and where to look further."""

    def __init__(self, expected: str, found: object, where: object = None) -> None:
        self.expected, self.found, self.where = expected, found, where
        super().__init__(f"expected {expected}; found {found}" + (f" (see {where})" if where else ""))


def equal(what: str, found: object, wanted: object, where: object = None) -> None:
    """Raises Failed unless both are equal."""
    if found != wanted:
        raise Failed(f"{what} to be {wanted!r}", repr(found), where)


def true(condition: object, expected: str, found: object, where: object = None) -> None:
    """Raises Failed unless the condition holds; `expected` says the condition in words."""
    if not condition:
        raise Failed(expected, found, where)


def contains(what: str, text: str, *words: str, where: object = None) -> None:
    """Raises Failed unless the text holds all words, in upper or lower case."""
    lacking = [each for each in words if each.lower() not in text.lower()]
    if lacking:
        raise Failed(f"{what} to name {', '.join(map(repr, lacking))}", repr(text[-600:]), where)


def nothing(what: str, found: Iterable[str], where: object = None) -> None:
    """Raises Failed when there is anything in `found`; shows the first twenty."""
    lines = list(found)
    if lines:
        more = [f"and {len(lines) - 20} more"] if len(lines) > 20 else []
        raise Failed(f"no {what}", "\n        ".join(["", *lines[:20], *more]), where)


def wait_until(what: str, condition: Callable[[], object], timeout_s: float, interval_s: float = 0.3) -> None:
    """Returns when the condition holds. Raises Failed, which says what was waited for, when it does not in time."""
    deadline = monotonic() + timeout_s
    while not condition():
        if monotonic() > deadline:
            raise Failed(f"{what} within {timeout_s:.0f} s", "that it did not happen")
        sleep(interval_s)
