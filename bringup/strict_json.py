"""JSON as dockerd reads it, no more: what Python would also take is refused, with its place and its name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

BOM = "\ufeff"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+')
_USER = re.compile(r"//[^/@\s]*@")  # a password in an address


class NotJson(ValueError):
    """Where it stops being JSON, and what stands there."""

    def __init__(self, text: str, at: int, what: str) -> None:
        self.line, self.column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        whole = text.split("\n")[self.line - 1].strip()
        near = _USER.sub("//***@", whole)
        super().__init__(
            f"line {self.line}, column {self.column}: {what}" + (f", near {near[:60]!r}" if near and whole.isprintable() else "")
        )


def read(text: str) -> Any:
    """The value. Raises NotJson; also for a key that an object has twice, and for numbers that JSON does not have."""
    text = text.removeprefix(BOM)
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise NotJson(text, *_named(text, error)) from None
    except RecursionError:
        raise NotJson(text, 0, "nested too deep") from None
    except _BadNumber as error:
        at = next((at for at, token in _tokens(text) if token == error.args[0]), 0)
        raise NotJson(text, at, f"{error.args[0][:20]} is no number of JSON's") from None
    twice = _twice(text)
    if twice:
        raise NotJson(text, *twice)
    return value


class _BadNumber(ValueError):
    pass


def _no_number(literal: str) -> NoReturn:
    raise _BadNumber(literal)


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _no_number(literal)


def _whole(literal: str) -> int:
    return int(literal) if len(literal) < 100 else _no_number(literal)


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    return ((found.start(), found[0]) for found in _TOKEN.finditer(text))


def _named(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """(where, what) of a parser's error, by the kinds of fault that people make."""
    at = error.pos + len(text[error.pos :]) - len(text[error.pos :].lstrip())
    rest, before = text[at:], text[:at].rstrip()
    if text.lstrip().startswith("<"):
        return at, "this is a web page"
    if rest.startswith(("//", "/*", "#")):
        return at, "a comment, which JSON does not have"
    if before.endswith(",") and rest[:1] in ("}", "]"):
        return len(before) - 1, "a comma after the last entry"
    if rest.startswith(","):
        return at, "a comma too many" if before.endswith((",", "[", "{")) else error.msg
    if rest.startswith("'"):
        return at, "a single quote, where JSON has double quotes"
    if not rest:
        return max(len(before) - 1, 0), "the file ends in the middle"
    return error.pos if error.msg.startswith("Invalid control") else at, error.msg


def _twice(text: str) -> tuple[int, str] | None:
    """The first key that its object has already, in a text that is JSON."""
    objects: list[dict[str, int]] = []
    for at, word in _tokens(text):
        if word in ("{", "["):
            objects.append({})
        elif word in ("}", "]"):
            objects.pop()
        elif word[0] == '"' and text[at + len(word) :].lstrip().startswith(":"):
            key = json.loads(word)
            if key in objects[-1]:
                line = text.count("\n", 0, objects[-1][key]) + 1
                return at, f"the key {key!r} for a second time (first in line {line})"
            objects[-1][key] = at
    return None
