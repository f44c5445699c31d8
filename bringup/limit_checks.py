"""Limits that were read where they count -> checks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bringup.limits import overriding
from bringup.report import Check
from bringup.survey import Survey
from bringup.target import Target

PLACES = {"login": "memlock-of-logins", "unit": "memlock-of-units", "user": "memlock-of-another-user"}


def limit_checks(survey: Survey, target: Target, found: Mapping[str, Mapping[str, Any]]) -> list[Check]:
    """+ found: what facts.limits says of each place that was asked

    Nothing where the host cannot have the memlock that is wanted: the step says so, and the check of the kernel's container.
    """
    if target.memlock is None:
        return []
    checks = [_memlock(name, found[place], str(target.memlock), survey) for place, name in PLACES.items() if place in found]
    ulimits = target.docker.options.get("default-ulimits")
    nofile = ulimits.get("nofile") if isinstance(ulimits, Mapping) else None
    open_files = nofile.get("Soft") if isinstance(nofile, Mapping) else None
    have = found["user"]["open_files"] if "user" in found else []
    if open_files is not None and have:
        right = have[0] == str(open_files)
        said = have[0] if right else f"{have[0]} in a container, {open_files} are wanted"
        checks.append(Check("open-files-in-container", "pass" if right else "fail", said, have[0], str(open_files)))
    return checks


def _memlock(name: str, place: Mapping[str, Any], wanted: str, survey: Survey) -> Check:
    have = place["memlock"]
    if not have:
        return Check(name, "skipped", f"could not be read: {place['problem'] or 'the kernel does not tell'}")
    if have == [wanted, wanted]:
        return Check(name, "pass", wanted)
    said = f"{' and '.join(dict.fromkeys(have))}, {wanted} is wanted"
    others = overriding(survey)
    if others and name != PLACES["user"]:
        return Check(name, "warn", f"{said}; {'; '.join(others)} wins", have[0], wanted)
    return Check(name, "fail", said, have[0], wanted)
