"""What each step of a run has to change, as pure functions: (survey, target) -> Change | None.

The plan walks through them in order to predict; the operations of the same names ask them again with the live survey, and act.
So what is planned and what is done cannot come apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bringup.survey import Survey


@dataclass(frozen=True)
class Change:
    """`why`: what is found that is not as it shall be. `what`: what will be done. `after`: what a survey would then say."""

    why: str
    what: str
    after: Survey
    reboots: bool = False


@dataclass(frozen=True)
class Skip:
    """A step that cannot be had on this host, with its reason; it is said in the report, and never an attempt that breaks things."""

    why: str


def uncommented(text: str) -> str:
    """A file of ours as a survey shows it: without comments and empty lines."""
    kept = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return "".join(f"{line}\n" for line in kept)


def edited(survey: Survey) -> Survey:
    """A copy to write the outcome of a change into."""
    found: Survey = _copied(survey)
    return found


def _copied(value: Any) -> Any:
    """Of what JSON holds: three times as quick as copy.deepcopy, which takes most of the time of a plan."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value
