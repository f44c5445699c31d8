"""Saved surveys: JSON text -> surveys by host. Nothing is guessed: a text that is no survey of this schema is an error with its place."""

from __future__ import annotations

import json
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from bringup.errors import UserError
from bringup.survey import SCHEMA, Survey

FACT = "survey.HostSurvey"


def read_surveys(text: str, where: str) -> dict[str, Survey | None]:
    """One survey, or what `pyinfra … fact facts.survey.HostSurvey --json` printed. None for a host that gave none.

    A single survey is of the host "-". `where` names the text in errors. Raises UserError.
    """
    if not text.strip():
        raise UserError(f"{where} is empty: save a survey with `pyinfra INVENTORY fact facts.survey.HostSurvey --json > FILE`")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not JSON (line {error.lineno}, column {error.colno}: {error.msg}): is it cut off?") from None
    except RecursionError:
        raise UserError(f"{where} is no survey: it is nested too deep") from None
    if not isinstance(value, dict):
        raise UserError(f"{where} holds {_kind(value)}, not a survey")
    if "schema" in value:
        return {"-": checked(value, where)}
    facts = [name for name in value if FACT in name]
    if len(facts) != 1 or not isinstance(value[facts[0]], dict):
        raise UserError(f"{where} is no survey: it has the keys {', '.join(sorted(value)[:5]) or 'of nothing'}")
    if not value[facts[0]]:
        raise UserError(f"{where} holds no host: was the inventory empty?")
    return {host: checked(each, f"{where}: {host}") if each is not None else None for host, each in value[facts[0]].items()}


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)


def checked(value: object, where: str) -> Survey:
    """The value as a survey of this schema. Raises UserError."""
    if not isinstance(value, dict) or "schema" not in value:
        raise UserError(f"{where}: this is no survey: take one with `pyinfra INVENTORY fact facts.survey.HostSurvey --json`")
    if type(value["schema"]) is not int:
        raise UserError(f"{where}: schema is {value['schema']!r}, not a number: take a new survey")
    if value["schema"] != SCHEMA:
        age = "a newer" if value["schema"] > SCHEMA else "an older"
        raise UserError(
            f"{where}: the survey has schema {value['schema']}, of {age} gpu-bringup; this one reads {SCHEMA}: take a new one"
        )
    problem = mismatch(value, Survey, "")
    if problem:
        raise UserError(f"{where}: {problem}: take a new survey")
    return value  # type: ignore[return-value]


def mismatch(value: Any, hint: Any, path: str) -> str | None:
    """Where the value does not have the type, in words; None where it has."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return None
    if origin in (Union, types.UnionType):
        problems = [mismatch(value, each, path) for each in arguments]
        return None if None in problems else min((each for each in problems if each), key=len)
    if origin is Literal:
        return None if value in arguments else f"{path} is {value!r}"
    if is_typeddict(hint):
        return _record_mismatch(value, hint, path)
    if origin in (list, dict):
        if not isinstance(value, origin):
            return f"{path} is {type(value).__name__}, not {origin.__name__}"
        items = value.items() if isinstance(value, dict) else enumerate(value)
        found = (mismatch(each, arguments[-1], f"{path}.{key}".lstrip(".")) for key, each in items)
        return next((each for each in found if each), None)
    wanted: tuple[type, ...] = (float, int) if hint is float else (hint,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        return f"{path} is {type(value).__name__}, not {'null' if hint is type(None) else hint.__name__}"
    return None


def _record_mismatch(value: Any, hint: Any, path: str) -> str | None:
    if not isinstance(value, dict):
        return f"{path} is {type(value).__name__}, not a record"
    fields = get_type_hints(hint)
    for name in fields:
        if name not in value:
            return f"{f'{path}.{name}'.lstrip('.')} is missing"
    for name, each in value.items():
        if name not in fields:
            return f"{f'{path}.{name}'.lstrip('.')} is unknown"
        problem = mismatch(each, fields[name], f"{path}.{name}".lstrip("."))
        if problem:
            return problem
    return None
