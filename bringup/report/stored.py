"""Result files -> results, with what is wrong in the other files; and the schema that is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from bringup.report import SCHEMA, HostResult

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ADAPTER = TypeAdapter(HostResult)


def json_schema() -> dict[str, Any]:
    """Of the files that a run writes: `docs/report.schema.json`."""
    return {
        "$schema": DIALECT,
        "title": f"gpu-bringup: one host's result, schema {SCHEMA}",
        **{key: each for key, each in _ADAPTER.json_schema(mode="serialization").items() if key != "title"},
    }


def read_result(text: str) -> HostResult:
    """Raises ValueError, which says in a few words what the file is instead."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is no JSON ({error})") from None
    if not isinstance(found, dict) or "schema" not in found or "host" not in found:
        raise ValueError("is no result of gpu-bringup: it has no schema and host")
    if found["schema"] != SCHEMA:
        raise ValueError(f"has schema {found['schema']!r}, and this version reads {SCHEMA}: use the version that wrote it")
    try:
        return _ADAPTER.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(each) for each in first["loc"]) or "it"
        raise ValueError(f"is broken: {where} is {str(first['input'])[:80]!r}: {first['msg'].lower()}") from None


def read_results(texts: Mapping[str, str]) -> tuple[list[HostResult], list[str]]:
    """(the results by host, one sentence for each file that is none). `texts`: file name -> what is in it."""
    results: dict[str, HostResult] = {}
    came_from: dict[str, str] = {}
    problems = []
    for name, text in sorted(texts.items()):
        try:
            result = read_result(text)
        except ValueError as error:
            problems.append(f"{name} {error}")
            continue
        if result.host in results:
            problems.append(f"{name} is of host {result.host}, which {came_from[result.host]} is of already: left out")
            continue
        results[result.host], came_from[result.host] = result, name
    return [results[host] for host in sorted(results)], problems
