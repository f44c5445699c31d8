"""What people have -> sources with their text: bundles (YAML or JSON), pasted messages, shell transcripts, logs of any size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from bringup.doctor.source import MESSAGE, Source
from bringup.doctor.transcript import read_transcript, source_name

MAX_LINE = 2000  # characters: what is longer says nothing more, and patterns are tried on every place of a line
CONDENSE_ABOVE = 64 * 1024  # characters: longer texts are logs, of which only lines that can matter are kept
MAX_LINES, REPEATS = 1500, 3
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# a line of a big log without any of these words is of no cause
TRIGGERS = (
    "nvrm", "nvidia", "nouveau", "nova", "xid", "cuda", "docker", "containerd", "error", "fail", "fehler", "e: ", "w: ", "dpkg", "bar",
    "cannot", "could not", "unable", "denied", "not found", "no space", "gpu", "nccl", "fabric", "imex", "oom", "out of memory", "lock",
    "secure", "key", "rejected", "killed", "timeout", "timed out", "aer", "pcie", "segfault", "unsupported", "invalid",
)  # fmt: skip
NO_FILE = re.compile(
    r"(?:.{0,80}(?:no such file|permission denied|cannot|nicht gefunden|keine berechtigung)|not found).{0,80}", re.I
)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A safe loader without aliases: a bundle has none, and a small text of them can stand for a huge one."""

    def compose_node(self, parent: Any, index: Any) -> Any:  # typed by yaml's stubs as untyped
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("a bundle has no aliases")
        return super().compose_node(parent, index)


def read_evidence(texts: Iterable[str]) -> tuple[Source, ...]:
    """All sources of one host, from texts of any kind. Never fails: what is no bundle is a message."""
    found: list[Source] = []
    for text in texts:
        bundle = _bundle(text)
        found += from_mapping(bundle) if bundle is not None else read_transcript(MESSAGE, clean(text))
    return tuple(found)


def from_mapping(bundle: Mapping[Any, Any]) -> list[Source]:
    """The sources of a bundle. A value that is no text is shown as JSON, a missing one (null) was not looked at."""
    found: list[Source] = []
    for key, value in bundle.items():
        if value is None:
            continue
        name, text = str(key).strip(), clean(value if isinstance(value, str) else _json(value))
        if name.startswith("$ "):
            found.append(Source(source_name(name[2:]), text))
        elif name.startswith("/") and NO_FILE.fullmatch(text.strip()):  # a pasted "/dev/x: No such file or directory" is YAML too
            found.append(Source(MESSAGE, f"{name}: {text}"))
        elif name.startswith("/"):
            found.append(Source(name, text))
        else:
            found += read_transcript(MESSAGE, text)
    return found


def _json(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except (RecursionError, ValueError, TypeError):
        return ""


def _is_source(key: object) -> bool:
    return isinstance(key, str) and (key.startswith(("/", "$ ")) or key.strip().lower() in (MESSAGE, "log", "stderr"))


def _bundle(text: str) -> Mapping[Any, Any] | None:
    """The mapping that a text is, or None where it is no bundle: a pasted `docker: Error …` is YAML too."""
    head = text.lstrip("\ufeff \t\r\n")
    if not re.search(r"""^(?:[ \t{,]*["']?(?:/[\w.]|\$ \w|message\b|log\b|stderr\b)[^\n]*:|\? ["']?[/$])""", head, re.M):
        return None
    for parse in (json.loads, _yaml):
        try:
            value = parse(head)
        except (ValueError, RecursionError, yaml.YAMLError):
            continue
        if isinstance(value, Mapping) and any(_is_source(key) for key in value):
            return value
    return None


def _yaml(text: str) -> Any:
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader


def clean(text: str) -> str:
    """Without terminal escapes, carriage returns and NULs; lines cut at a length; a big log reduced to lines that can matter."""
    if "\x1b" in text:
        text = ESCAPES.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    if len(text) > CONDENSE_ABOVE:
        return _condensed(text)
    return "\n".join(line[:MAX_LINE] for line in text.split("\n"))


_KIND = str.maketrans("", "", "0123456789abcdef:.,- []")  # what differs between lines of one kind: times, addresses, numbers


def _condensed(text: str) -> str:
    """The lines of a log that can matter, each kind of line at most REPEATS times, in their order; the newest where they are many."""
    seen: dict[str, int] = {}
    kept: list[str] = []
    for line in text.split("\n"):
        low = line[:MAX_LINE].lower()
        kind = low.translate(_KIND)
        if "xid" in low:
            kind += _xid(low)  # its number is its meaning
        count = seen.get(kind, 0)
        if count >= REPEATS:
            continue
        seen[kind] = count + 1
        if any(word in low for word in TRIGGERS):
            kept.append(line[:MAX_LINE])
    return "\n".join(kept if len(kept) <= MAX_LINES else kept[: MAX_LINES // 2] + kept[-MAX_LINES // 2 :])


def _xid(line: str) -> str:
    found = re.search(r"xid.{0,40}?: (\d+)", line)
    return f"xid {found[1]}" if found else "xid"
