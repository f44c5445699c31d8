"""Doctor: from a message, a log or an evidence bundle to the cause, with its remedy (the contract: README, "When something fails")."""

from __future__ import annotations

from bringup.doctor.causes import Cause, load_causes
from bringup.doctor.diagnose import Candidate, Diagnosis, diagnose
from bringup.doctor.evidence import from_mapping, read_evidence
from bringup.doctor.source import Source

__all__ = ["Candidate", "Cause", "Diagnosis", "Source", "diagnose", "explain", "from_mapping", "load_causes", "read_evidence"]


def explain(text: str) -> list[str]:
    """What a failure of a run most likely comes from, a sentence each with its remedy; nothing where that is not fairly sure."""
    sure = [each for each in diagnose(read_evidence([text])).causes if each.confidence != "low"]
    return [
        f"likely cause ({each.cause.id}): {each.cause.title}; by hand: {'; '.join(each.cause.by_hand)} "
        f"(bringup doctor --explain {each.cause.id})"
        for each in sure[:2]
    ]
