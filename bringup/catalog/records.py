"""From YAML text to frozen dataclasses, strictly: what a record does not declare, or declares otherwise, is a CatalogError."""

from __future__ import annotations

import calendar
import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import yaml

from bringup.errors import UserError

T = TypeVar("T")
Provenance = Literal["measured", "table", "computed", "recalled"]
SourceName = typing.NewType("SourceName", str)  # a key of the file's `sources`
PROVENANCES: tuple[str, ...] = typing.get_args(Provenance)
# The C loader is about ten times faster; it is missing where pyyaml was built without libyaml.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MONTH = re.compile(r"(\d{4})-(\d{2})")


class CatalogError(UserError):
    """One sentence: file, key (and line where the YAML itself is broken), and what is wrong there."""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Where a value was read, and when."""

    text: str
    as_of: date


@dataclasses.dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value with its origin; written in YAML as "VALUE PROVENANCE SOURCE", for example `80 table tpu`."""

    value: T
    provenance: Provenance
    source: str
    as_of: date

    @property
    def is_firm(self) -> bool:
        """Whether a host may fail on the strength of this value (recalled and computed ones only warn)."""
        return self.provenance in ("measured", "table")


@dataclasses.dataclass(frozen=True, slots=True)
class Month:
    """A day, or a month whose day is not known."""

    year: int
    month: int
    day: int | None = None

    @property
    def first_day(self) -> date:
        return date(self.year, self.month, self.day or 1)

    @property
    def last_day(self) -> date:
        return date(self.year, self.month, self.day or calendar.monthrange(self.year, self.month)[1])


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What a value is read in: the file, for messages, and the sources that its values may name."""

    file: str
    sources: Mapping[str, Source]

    def error(self, key: str, problem: str) -> CatalogError:
        return CatalogError(f"{self.file}: {key} {problem}")


Reader = Callable[[Any, str, Context], Any]


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises CatalogError when it cannot be read, is no YAML, or no mapping."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)  # noqa: S506 - a safe loader, in C or not
    except OSError as error:
        raise CatalogError(f"{path.name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path.name}: is not UTF-8 text (byte {error.start})") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark is not None else ""
        raise CatalogError(f"{path.name}:{line} not valid YAML: {getattr(error, 'problem', None) or error}") from error
    except ValueError as error:  # a date such as 2026-13-01
        raise CatalogError(f"{path.name}: holds a value that cannot be: {error}") from error
    if not isinstance(data, dict):
        raise CatalogError(f"{path.name}: must be a mapping at its top, it is {_kind(data)}")
    return data


def load_file(path: Path, shape: type[T]) -> T:
    """The file's content as one record of the given shape; `sources` is read first, because the other keys name it."""
    data = read_yaml(path)
    context = Context(path.name, {})
    sources = _reader(dict[str, Source])(data.get("sources", {}), "sources", context)
    reader = _reader(typing.cast(Any, shape))
    return typing.cast(T, reader(data, "", Context(path.name, sources)))


def _kind(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "empty" if value is None else names.get(type(value), type(value).__name__)


def _mismatch(value: object, key: str, expected: str, context: Context) -> CatalogError:
    hint = ": put it in quotes" if expected == "text" and isinstance(value, int | float | date) else ""
    return context.error(key, f"must be {expected}, it is {_kind(value)} ({value!r}){hint}")


@functools.cache
def _reader(hint: Any) -> Reader:
    """How a value of this type is read. Cached: types are few, values are many."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        inner = _reader(next(arg for arg in args if arg is not type(None)))
        return lambda value, key, context: None if value is None else inner(value, key, context)
    if origin is Literal:
        return functools.partial(_read_choice, args)
    if origin is tuple:
        return functools.partial(_read_list, _reader(args[0]))
    if origin in (dict, Mapping):
        return functools.partial(_read_mapping, args[0], _reader(args[1]))
    if origin is Sourced:
        return functools.partial(_read_sourced, args[0])
    if hint is SourceName:
        return _read_source_name
    if hint is Month:
        return _read_month
    if dataclasses.is_dataclass(hint):
        return _record_reader(typing.cast(type, hint))
    return functools.partial(_read_plain, hint)


def _read_plain(kind: type, value: Any, key: str, context: Context) -> Any:
    if type(value) is kind or (kind is float and type(value) is int):
        return value
    raise _mismatch(value, key, {str: "text", date: "a date", bool: "true or false"}.get(kind, "a number"), context)


def _read_choice(choices: tuple[Any, ...], value: Any, key: str, context: Context) -> Any:
    if value not in choices:
        raise context.error(key, f"must be one of {', '.join(map(str, choices))}, it is {value!r}")
    return value


def _read_list(item: Reader, value: Any, key: str, context: Context) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _mismatch(value, key, "a list", context)
    return tuple(item(entry, f"{key}[{_label(entry, index)}]", context) for index, entry in enumerate(value))


def _label(entry: Any, index: int) -> str:
    """What people find a record by: its name where it has one, else its place."""
    if isinstance(entry, dict):
        for name in ("name", "number", "version"):
            if name in entry:
                return str(entry[name])
    return str(index)


def _read_mapping(key_type: type, item: Reader, value: Any, key: str, context: Context) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise _mismatch(value, key, "a mapping", context)
    for name in value:
        _read_plain(key_type, name, f"{key}.{name}", context)
    return {name: item(entry, f"{key}.{name}", context) for name, entry in value.items()}


def _read_sourced(kind: type, value: Any, key: str, context: Context) -> Sourced[Any]:
    words = value.split() if isinstance(value, str) else []
    if len(words) != 3 or words[1] not in PROVENANCES:
        raise context.error(key, f"must be VALUE PROVENANCE SOURCE (80 table tpu), it is {value!r}")
    _read_source_name(words[2], key, context)
    try:
        number = kind(words[0])
    except ValueError:
        raise context.error(key, f"must begin with a number, it is {value!r}") from None
    return Sourced(number, typing.cast(Provenance, words[1]), words[2], context.sources[words[2]].as_of)


def _read_source_name(value: Any, key: str, context: Context) -> Any:
    if value not in context.sources:
        raise context.error(key, f"names the source {value!r}, which is not among the file's sources")
    return value


def _read_month(value: Any, key: str, context: Context) -> Month:
    if type(value) is date:
        return Month(value.year, value.month, value.day)
    match = _MONTH.fullmatch(value) if isinstance(value, str) else None
    if match is None or not 1 <= int(match[2]) <= 12:
        raise context.error(key, f"must be a day or a month (2026-11-30 or 2026-11), it is {value!r}")
    return Month(int(match[1]), int(match[2]))


def _record_reader(shape: type) -> Reader:
    hints = typing.get_type_hints(shape)
    fields = [field for field in dataclasses.fields(shape) if field.init]
    readers = {field.metadata.get("key", field.name): (field.name, _reader(hints[field.name])) for field in fields}
    required = {
        field.metadata.get("key", field.name)
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }

    def read(value: Any, key: str, context: Context) -> Any:
        if not isinstance(value, dict):
            raise _mismatch(value, key or "the file", "a mapping", context)
        here = f"{key}." if key else ""
        if value.keys() - readers.keys():
            unknown = sorted(map(str, value.keys() - readers.keys()))[0]
            raise context.error(f"{here}{unknown}", f"is not a known field (known: {', '.join(readers)})")
        if required - value.keys():
            raise context.error(f"{here}{sorted(required - value.keys())[0]}", "is missing")
        return shape(**{readers[name][0]: readers[name][1](entry, here + name, context) for name, entry in value.items()})

    return read
