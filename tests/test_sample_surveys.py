"""Surveys captured on real machines still parse, and say what the machine was."""

from __future__ import annotations

from pathlib import Path

from bringup import survey as surveys
from bringup.survey import Survey
from bringup.survey.parse import parse_survey

SAMPLES = Path(__file__).parent / "samples" / "surveys"


def unread(value: object, path: str = "") -> list[str]:
    """Paths of what could not be read."""
    if isinstance(value, dict):
        if surveys.unreadable(value) is not None:
            return [path]
        return [each for key, inner in value.items() for each in unread(inner, f"{path}.{key}".lstrip("."))]
    return []


def test_a_real_h200_without_systemd_and_docker() -> None:
    survey: Survey = parse_survey((SAMPLES / "h200-ubuntu2404-no-systemd.txt").read_text().splitlines(), now_s=1796079594.0)
    assert unread(survey) == ["container"]  # PID 1's environment was closed even to root there
    assert [each["device"] for each in surveys.gpus(survey)] == ["2335"] and surveys.nvswitches(survey) == []
    assert surveys.loaded_version(survey) == "580.159.04" and surveys.module_kind(survey) == "open"
    assert not surveys.is_simulated(survey)
    assert survey["driver"]["module_version"] is None  # built into the image: modinfo knows nothing of it
    assert survey["docker"]["version"] is None and survey["units"] is None
    assert survey["cgroup_controllers"] == ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"]
