"""Where relations are kept, by the name that the causes use: the function's, with dashes."""

from __future__ import annotations

from collections.abc import Callable

from bringup.doctor.facts import Facts

Relation = Callable[[Facts], list[str]]
RELATIONS: dict[str, Relation] = {}


def relation(function: Relation) -> Relation:
    RELATIONS[function.__name__.replace("_", "-")] = function
    return function
