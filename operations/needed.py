"""The question that every operation asks first."""

from __future__ import annotations

from pyinfra import host

from bringup.plan import step_function
from bringup.steps import Change
from bringup.target import Target
from facts import live


def needed(step: str, target: Target) -> Change | None:
    """What the step has to change on the current host now; says "no changes" itself where nothing has to."""
    found = step_function(step)(live.survey(), target)
    if isinstance(found, Change):
        live.expect(found.after)
        return found
    host.noop(f"{step}: {found.why}" if found else f"{step}: as it shall be")
    return None
