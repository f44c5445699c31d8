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

from bringup.doctor.source import Source
from bringup.doctor.wording import Lowered

MAX_SHOWN = 240  # characters of a line that is shown


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
        line = _line_with(compiled(pattern), each)
        if wanted and line is not None:
            found.append(shown(each.source, line))
        elif not wanted and line is None:
            found.append(shown(each.source, next((line for line in each.source.text.split("\n") if line.strip()), "(nothing)")))
        elif not wanted:
            return []
    return found[:3]


def _line_with(pattern: re.Pattern[str], lowered: Lowered) -> str | None:
    """The line of the original text that a pattern is found in; counted by lines, since lower case may be longer."""
    match = pattern.search(lowered.low)
    if match:
        number = lowered.low.count("\n", 0, match.start())
    elif lowered.joined is not None and (match := pattern.search(lowered.joined)):
        number = lowered.starts[lowered.joined.count("\n", 0, match.start())]
    else:
        return None
    lines = lowered.source.text.split("\n")
    # a pattern may begin at the end of the line before
    return next((line for line in lines[number:] if line.strip()), "")


def shown(source: Source, line: str) -> str:
    return f"{source.name}: {line.strip()[:MAX_SHOWN]}"
