"""Steps of the container toolkit."""

from __future__ import annotations

from bringup import versions
from bringup.steps import Change, edited
from bringup.steps.packages import PREDICTED, with_installed
from bringup.survey import Survey, installed, unreadable
from bringup.target import Toolkit


def toolkit_packages(survey: Survey, toolkit: Toolkit) -> Change | None:
    """All at one version, not below the security floor."""
    found = {each: installed(survey, each) for each in toolkit.packages}
    lacking = [name for name, version in found.items() if version is None]
    old = [
        name
        for name, version in found.items()
        if version not in (None, PREDICTED) and not versions.at_least(str(version), toolkit.floor)
    ]
    mixed = len(set(found.values())) > 1 and not lacking
    gone = toolkit_gone(survey)
    if not lacking and not old and not mixed and not gone:
        return None
    after = with_installed(survey, list(toolkit.packages))
    after["toolkit_version"] = PREDICTED
    why = (
        f"{', '.join(lacking)} not installed"
        if lacking
        else f"older than {toolkit.floor}"
        if old
        else gone or "of several versions"
    )
    return Change(f"container toolkit: {why}", "install the container toolkit", after)


def toolkit_leftovers(survey: Survey, toolkit: Toolkit) -> Change | None:
    """Packages that the toolkit had in the past; also removed ones whose settings files a purge would take: daemon.json is one."""
    there = [each for each in toolkit.leftovers if each in survey["packages"]["installed"]]
    if not there:
        return None
    after = edited(survey)
    for each in there:
        del after["packages"]["installed"][each]
    what = "remove them and keep their settings: what they set up goes on by the toolkit (nvidia-docker run is docker run --gpus all)"
    return Change(f"{', '.join(there)} of the toolkit's past", what, after)


def toolkit_gone(survey: Survey) -> str | None:
    """Which of its programs is missing, or None. One that could not be asked is not missing."""
    why = unreadable(survey["toolkit_version"]) or ""
    if why.endswith("is missing"):
        return why
    return "nvidia-ctk is missing" if survey["toolkit_version"] is None else None
