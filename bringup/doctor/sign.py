"""One sign of a cause: a pattern in any text, a pattern in certain sources, or a relation between sources.

failed to initialize nvml: unknown error        a regular expression, tried on lower-cased text of every source
lsmod ~ ^nouveau\\b                              the same, only in sources whose name holds the first expression
docker info !~ nvidia                           that source is there, and holds nothing of the kind
@loaded-differs-from-installed                  a function of bringup.doctor.relations
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bringup.doctor.evidence import Source

MAX_SHOWN = 240  # characters of a line that is shown


@dataclass(frozen=True)
class Lowered:
    """A source, and its text in lower case, once for all patterns."""

    source: Source
    name: str
    low: str


def lower(source: Source) -> Lowered:
    return Lowered(source, source.name.lower(), source.text.lower())


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.M)


def split(sign: str) -> tuple[str | None, bool, str]:
    """(expression for the source's name or None, whether it must be found, expression for the text)."""
    for mark, wanted in ((" !~ ", False), (" ~ ", True)):
        where, found, pattern = sign.partition(mark)
        if found:
            return where, wanted, pattern
    return None, True, sign


def seen(sign: str, sources: Sequence[Lowered]) -> list[str]:
    """The lines that show a sign (no relation); empty where it is not seen."""
    where, wanted, pattern = split(sign)
    found: list[str] = []
    for each in sources:
        if where is not None and not compiled(where).search(each.name):
            continue
        match = compiled(pattern).search(each.low)
        if wanted and match:
            found.append(shown(each.source, line_at(each, match.start())))
        elif not wanted and not match:
            found.append(shown(each.source, next((line for line in each.source.text.split("\n") if line.strip()), "(nothing)")))
        elif not wanted:
            return []
    return found[:3]


def line_at(lowered: Lowered, place: int) -> str:
    """The line of the original text; counted by lines, since lower case may be longer."""
    lines = lowered.source.text.split("\n")
    number = lowered.low.count("\n", 0, place)
    line = lines[number] if number < len(lines) else ""
    if not line.strip():  # the pattern began at a line's end
        line = next((each for each in lines[number:] if each.strip()), "")
    return line


def shown(source: Source, line: str) -> str:
    return f"{source.name}: {line.strip()[:MAX_SHOWN]}"
