"""Merging Docker's daemon.json: every key of the user's stays, and stays where it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from bringup.dockerd import BOTH_PLACES, KEYS, flag_keys, flag_values, is_of_kind, is_whole
from bringup.errors import HostError, nearest
from bringup.strict_json import BOM, NotJson, read

PATH = "/etc/docker/daemon.json"
LIVE_RESTORE: Mapping[str, Any] = {"live-restore": True}
_NAMED = ("exec-opts", "labels", "storage-opts")  # lists of name=value, where a name may be given once
_TOOL = "nvidia-container-runtime"


@dataclass(frozen=True)
class Merged:
    """`text`: what the file shall hold, the user's own to the letter where nothing changes. `changes`: the keys that do."""

    text: str
    changes: tuple[str, ...]
    unknown: tuple[str, ...] = ()  # keys of the user's that dockerd does not know, as far as we do; it starts with none of them

    @property
    def content(self) -> dict[str, Any]:
        return parse(self.text)


@dataclass(frozen=True)
class CannotMerge:
    """Why a file is not merged, and what helps."""

    reason: str
    way_out: str

    @override
    def __str__(self) -> str:
        return f"{self.reason}: {self.way_out}"


def merge(current_text: str | None, wanted: Mapping[str, Any], unit_flags: str = "") -> Merged | CannotMerge:
    """The file with `wanted` in it: objects key by key, lists get what they lack, other values are replaced. Pure.

    Refused is what cannot be read, or would stop dockerd: wrong types, keys that the unit gives as flags too, a default runtime that
    is none. What the unit's flags give already, as wanted, is not written.

    + unit_flags: dockerd's command line by its unit
    """
    try:
        have = parse(current_text)
    except HostError as error:
        reason, _, way_out = str(error).rpartition(": ")
        return CannotMerge(reason, way_out)
    wrong = wrong_type(have, PATH)
    if wrong:
        return wrong
    given = flag_values(unit_flags)
    lacking = {key: value for key, value in wanted.items() if key in have or not _is_given(given.get(key), value)}
    content = combined(have, lacking)
    wrong = _doubled(content, unit_flags) or _no_such_runtime(content, given)
    if wrong:
        return wrong
    changes = [key for key in content if key not in have or _text(have[key]) != _text(content[key])]
    if (current_text or "").startswith(BOM):  # dockerd of 23 and later reads over it, and NVIDIA's tools do not
        changes.append("byte order mark")
    unknown = tuple(key for key in have if key not in KEYS)
    if not changes:
        return Merged(current_text or "", (), unknown)
    return Merged(_text(content, _indent(current_text or "")) + "\n", tuple(changes), unknown)


def merged(current_text: str | None, wanted: Mapping[str, Any], unit_flags: str = "") -> Merged:
    """The same where a refusal fails the host. Raises HostError."""
    found = merge(current_text, wanted, unit_flags)
    if isinstance(found, CannotMerge):
        raise HostError(str(found))
    return found


def parse(text: str | None) -> dict[str, Any]:
    """The file's content; an absent, empty or blank file is {} (as dockerd reads it). Raises HostError on anything else."""
    if not (text or "").removeprefix(BOM).strip():
        return {}
    try:
        value = read(text or "")
    except NotJson as error:
        raise HostError(f"{PATH} is not JSON ({error}): mend it or move it away") from None
    if not isinstance(value, dict):
        raise HostError(f"{PATH} holds {_called(value)}, not an object: mend it or move it away")
    return value


def combined(have: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """`have` with `wanted` in it, as `merge` says; neither is written into."""
    return {**have, **{key: _combined(key, have.get(key), value) for key, value in wanted.items()}}


def _combined(key: str, have: Any, wanted: Any) -> Any:
    if key == "runtimes" and isinstance(have, Mapping) and isinstance(wanted, Mapping):
        return {**have, **{name: _runtime(have.get(name), value) for name, value in wanted.items()}}
    if isinstance(wanted, Mapping):
        have = have if isinstance(have, Mapping) else {}
        same = (
            {each.casefold(): each for each in have} if "Soft" in wanted else {}
        )  # Go reads fields of a limit whatever their case
        names = {each: each if each in have else same.get(each.casefold(), each) for each in wanted}
        return {**have, **{names[each]: _combined(each, have.get(names[each]), value) for each, value in wanted.items()}}
    if isinstance(wanted, list | tuple):
        old = list(have) if isinstance(have, list) else []
        if key in _NAMED:
            theirs = {_name(each) for each in wanted if each not in old}
            old = [each for each in old if _name(each) not in theirs]
        return old + [each for each in wanted if _as_in_list(key, each) not in [_as_in_list(key, one) for one in old]]
    return wanted


def _runtime(have: Any, wanted: Any) -> Any:
    """One entry of runtimes. One of the user's that starts the wanted program in his way stays as it is."""
    if not isinstance(have, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    options = have.get("options")
    binary = have.get("path") or (options.get("BinaryName") if isinstance(options, Mapping) else None)
    if wanted.get("path") == _TOOL and binary in (_TOOL, f"/usr/bin/{_TOOL}"):  # where its package puts it
        wanted = {key: value for key, value in wanted.items() if key != "path"}
    rest = have if "path" not in wanted else {key: value for key, value in have.items() if key not in ("runtimeType", "options")}
    return {**rest, **wanted}


def _name(option: object) -> str:
    return str(option).partition("=")[0]


def _as_in_list(key: str, value: Any) -> Any:
    return value.rstrip("/") if key == "registry-mirrors" and isinstance(value, str) else value  # the same to dockerd


def _is_given(by_flags: Any, wanted: Any) -> bool:
    if isinstance(by_flags, list) and isinstance(wanted, list | tuple):
        return all(each in by_flags for each in wanted)
    if isinstance(by_flags, Mapping) and isinstance(wanted, Mapping):
        return all(by_flags.get(key) == value for key, value in wanted.items())
    return by_flags is not None and type(by_flags) is type(wanted) and by_flags == wanted


def _doubled(content: Mapping[str, Any], unit_flags: str) -> CannotMerge | None:
    flags = {key: flag for key, flag in flag_keys(unit_flags).items() if key in content and key not in BOTH_PLACES}
    if not flags:
        return None
    both = ", ".join(f"{key} (as {flag})" for key, flag in flags.items())
    reason = f"{PATH} would hold what docker.service gives as a flag, too, and Docker does not start with both: {both}"
    return CannotMerge(reason, "take it out of one of them (`systemctl cat docker` shows where the flag is set)")


def _no_such_runtime(content: Mapping[str, Any], given: Mapping[str, Any]) -> CannotMerge | None:
    name = content.get("default-runtime")
    known = {"runc", *(content.get("runtimes") or {}), *given.get("runtimes", {})}
    if not name or name in known or "." in name or "/" in name:  # the last two: a shim of containerd's
        return None
    hint = nearest(name, known)
    return CannotMerge(f"default-runtime in {PATH} is {name}, and runtimes has no such one{hint}", "add it there, or take it out")


def wrong_type(content: Mapping[str, Any], where: str) -> CannotMerge | None:
    """A value that dockerd does not take, of the keys that we know."""
    for key, value in content.items():
        kind = KEYS.get(key)
        if kind and not is_of_kind(value, kind):
            article = "an" if kind.startswith("object") else "a"
            return CannotMerge(f"{key} in {where} is {_shown(value)}, and dockerd wants {article} {kind}", "mend it")
    for key, checked in _RECORDS.items():
        for name, value in (content.get(key) or {}).items():
            if not isinstance(value, Mapping):
                return CannotMerge(f"{key}.{name} in {where} is {_shown(value)}, and dockerd wants an object", "mend it")
            for field, each in value.items():
                if field.casefold() in checked and not checked[field.casefold()](each):
                    return CannotMerge(
                        f"{key}.{name}.{field} in {where} is {_shown(each)}, which dockerd does not take", "mend it"
                    )
    return None


# the records that objects of daemon.json hold: what their fields may be
_RECORDS: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "runtimes": {"path": lambda value: isinstance(value, str), "runtimeargs": lambda value: is_of_kind(value, "list of texts")},
    "default-ulimits": {"name": lambda value: isinstance(value, str), "soft": is_whole, "hard": is_whole},
}


def _shown(value: object) -> str:
    """For people; addresses may hold passwords, so that only short plain values are shown."""
    text = json.dumps(value)
    return text if len(text) < 30 and "@" not in text else _called(value)


def _called(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else "something else")


def _text(value: object, indent: str | None = None) -> str:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which a file of UTF-8 can hold only in its escaped form
        return json.dumps(value, indent=indent)
    return text


def _indent(text: str) -> str:
    found = re.search(r'\n([ \t]+)"', text)
    return found[1] if found else "  "
