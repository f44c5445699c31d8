"""apt's lists of sources that contradict each other: apt then reads none, and only their owner can tell which one is right."""

from __future__ import annotations

from bringup.policy import Refused
from bringup.sources import Entry, is_for, normal, parse_file
from bringup.survey import Survey
from bringup.target import Repository, Target


def refuse_contradictions(survey: Survey, target: Target) -> None:
    """Two entries of others for one address with different keys. What clashes with ours is disabled by a step. Raises Refused."""
    if target.family != "apt":
        return
    ours: list[Repository | None] = [target.docker.repository]
    ours += [target.driver.repository] if target.driver else []
    ours += [target.toolkit.repository] if target.toolkit else []
    known: dict[tuple[str, str], Entry] = {}
    for path, text in sorted(survey["packages"]["repositories"].items()):
        for entry in parse_file(path, text)[0] if isinstance(text, str) and not path.endswith(".repo") else ():
            if any(is_for(entry, each) for each in ours if each):
                continue
            other = known.setdefault((normal(entry.uri), entry.suite.strip("/")), entry)
            if other.signed_by != entry.signed_by:
                reason = f"{other.path} and {entry.path} name {entry.uri} with different keys (Signed-By), and apt stops at that"
                raise Refused("clashing-source-lists", reason, "remove one of the two entries")
