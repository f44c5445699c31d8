"""Doctor: from a message, a log or an evidence bundle to the cause, with its remedy (the contract: README, "When something fails")."""

from __future__ import annotations

from bringup.doctor.causes import Cause, load_causes
from bringup.doctor.diagnose import Candidate, Diagnosis, diagnose
from bringup.doctor.evidence import Source, from_mapping, read_evidence

__all__ = ["Candidate", "Cause", "Diagnosis", "Source", "diagnose", "from_mapping", "load_causes", "read_evidence"]
