"""A source's text as the signs are tried on it: lower case, English, plain quotes, wrapped messages in one piece."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bringup.doctor.german import in_english
from bringup.doctor.source import MESSAGE, Source

QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u200b": ""})
ESCAPED_QUOTE = re.compile(r'\\+(?=")')  # of JSON in logs, once or several times
LOGS = re.compile(r"^\$ (?:journalctl|dmesg)\b")
# a daemon's remarks in its journal are none of its failures: dockerd warns of what it then does another way
REMARK = re.compile(r"^.*\blevel=(?:debug|info|warning)\b.*$", re.M)
PREFIX = re.compile(r"^(?:\[[ \d.]{3,20}\] |\w{3} +\d+ [\d:]{8} \S+ \S{1,60}?: )")
NVRM = re.compile(r"^(?:\[[^\]\n]{1,40}\]\s*|\w{3} +\d+ [\d:]{8} \S+ kernel: ?(?:\[[^\]\n]{1,40}\]\s*)?)?nvrm:\s*")
MAX_PIECES = 6  # lines of one message


@dataclass(frozen=True)
class Lowered:
    """A source, and what the signs are tried on.

    `joined`: the same, with the lines that go on a message joined to its first; `starts`: where each of its lines begins in the text.
    """

    source: Source
    name: str
    low: str
    joined: str | None = None
    starts: tuple[int, ...] = ()


def lower(source: Source) -> Lowered:
    """Once for all patterns."""
    low = ESCAPED_QUOTE.sub("", in_english(source.text.lower().translate(QUOTES)))
    is_log = LOGS.match(source.name)
    if is_log and "level=" in low:
        low = REMARK.sub("", low)
    if source.name != MESSAGE and not is_log:
        return Lowered(source, source.name.lower(), low)
    joined, starts = join_wrapped(low.split("\n"))
    wrapped = len(starts) <= low.count("\n")
    return Lowered(source, source.name.lower(), low, "\n".join(joined) if wrapped else None, tuple(starts) if wrapped else ())


def join_wrapped(lines: list[str]) -> tuple[list[str], list[int]]:
    """(lines, the number that each had): indented lines go on the one before, as do those of the driver's messages in the kernel log."""
    joined: list[str] = []
    starts: list[int] = []
    pieces = 0
    for number, line in enumerate(lines):
        more = _goes_on(lines[number - 1], line) if number and pieces < MAX_PIECES else None
        if more is not None and joined:
            joined[-1] = f"{joined[-1].rstrip()} {more}"
            pieces += 1
        else:
            joined.append(line)
            starts.append(number)
            pieces = 1
    return joined, starts


def _goes_on(before: str, line: str) -> str | None:
    """What a line adds to the message of the line before it; None where it begins another."""
    in_log = PREFIX.match(line)
    rest = line[in_log.end() :] if in_log else line
    if rest[:1] in (" ", "\t"):
        return rest.strip() if rest.strip() and before.strip() else None
    prefix = NVRM.match(line)
    if prefix and NVRM.match(before) and not before.rstrip().endswith((".", "!", ":")):
        return line[prefix.end() :]
    return None
