"""Units of systemd's that this project writes, and what belongs to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bringup.steps import uncommented
from bringup.survey import Survey, Unit, known, unit


def lacking(survey: Survey, files: Mapping[str, str]) -> list[str]:
    """Which of the files are not there as they shall be."""
    return [path for path, text in files.items() if survey["our_files"].get(path) != uncommented(text)]


def off(survey: Survey, services: Iterable[str], watches: Iterable[str] = ()) -> list[str]:
    """Which units are not enabled, or (of watches) do not run. Nothing where systemd did not say."""
    if known(survey["units"]) is None:
        return []
    found = {name: unit(survey, name) for name in (*services, *watches)}
    return [
        name
        for name, each in found.items()
        if each is None or each["enabled"] != "enabled" or (name in watches and each["active"] != "active")
    ]


def put(after: Survey, files: Mapping[str, str], services: Iterable[str], watches: Iterable[str] = ()) -> None:
    """Into a survey: the files are there, and the units on."""
    after["our_files"].update({path: uncommented(text) for path, text in files.items()})
    units = known(after["units"])
    if units is None:
        return
    for name in (*services, *watches):
        active = "active" if name in watches else "inactive"
        units[name] = Unit(load="loaded", active=active, enabled="enabled", fragment="", exec_start="", memlock="")
