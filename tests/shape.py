"""Does a value have the shape that a type says? For TypedDicts and what they are made of: types are all that a survey promises."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def mismatches(value: object, wanted: Any, where: str = "") -> list[str]:
    """One line for each place where the value is not of the type; [] where it is."""
    if wanted is Any or (wanted is None and value is None):
        return []
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return [] if any(not mismatches(value, each) for each in arguments) else [f"{where}: {value!r} is none of {wanted}"]
    if origin is Literal:
        return [] if value in arguments else [f"{where}: {value!r} is none of {arguments}"]
    if is_typeddict(wanted):
        if not isinstance(value, dict):
            return [f"{where}: {value!r} is no mapping"]
        hints = get_type_hints(wanted)
        if set(hints) != set(value):
            return [f"{where}: keys differ: {sorted(set(hints) ^ set(value))}"]
        return [line for key, hint in hints.items() for line in mismatches(value[key], hint, f"{where}.{key}")]
    if origin is list:
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        return [line for at, each in enumerate(value) for line in mismatches(each, arguments[0], f"{where}[{at}]")]
    if origin is dict:
        if not isinstance(value, dict):
            return [f"{where}: {value!r} is no mapping"]
        return [line for key, each in value.items() for line in mismatches(each, arguments[1], f"{where}[{key!r}]")]
    if wanted is float:
        return [] if isinstance(value, int | float) and not isinstance(value, bool) else [f"{where}: {value!r} is no number"]
    right = type(value) is wanted
    return [] if right else [f"{where}: {value!r} is no {getattr(wanted, '__name__', wanted)}"]
