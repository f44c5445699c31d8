"""Evidence -> causes, the likeliest first, each with what speaks for it and against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bringup.doctor import relations
from bringup.doctor.causes import Cause, load_causes
from bringup.doctor.facts import Facts
from bringup.doctor.masking import masked
from bringup.doctor.sign import seen
from bringup.doctor.source import Source
from bringup.doctor.wording import Lowered, lower

Confidence = Literal["high", "medium", "low"]
# how much a sign is worth; further signs of the same kind add little. Below LEAST nothing is said.
SAYS, FACT, SHARED, HINT, AGAINST, MORE = 0.8, 0.8, 0.4, 0.25, 0.5, 0.02
HIGH, MEDIUM, LEAST = 0.75, 0.5, 0.3


@dataclass(frozen=True)
class Candidate:
    """A cause, with the lines for and against it. `shared`: the messages that it has in common with others."""

    cause: Cause
    score: float
    because: tuple[str, ...]
    against: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    @property
    def confidence(self) -> Confidence:
        return "high" if self.score >= HIGH else "medium" if self.score >= MEDIUM else "low"

    @property
    def only_shared(self) -> bool:
        return len(self.because) == len(self.shared)


@dataclass(frozen=True)
class Diagnosis:
    """`causes`: what is shown, the likeliest first. `rivals`: what has a message in common with these, and nothing else for it."""

    causes: tuple[Candidate, ...] = ()
    rivals: tuple[Candidate, ...] = field(default=())

    @property
    def unknown(self) -> bool:
        return not self.causes

    @property
    def look(self) -> tuple[str, ...]:
        """What would tell the causes apart, or, where nothing fits, what to collect."""
        wanted = [each for candidate in (*self.causes[:1], *self.rivals) for each in candidate.cause.look]
        return tuple(dict.fromkeys(wanted)) if self.rivals else ()


def diagnose(sources: Sequence[Source], causes: Mapping[str, Cause] | None = None) -> Diagnosis:
    """The causes of what the sources show; none is found on a healthy host."""
    known = load_causes() if causes is None else causes
    lowered = [lower(each) for each in sources]
    facts = Facts(sources)
    asked: dict[str, list[str]] = {}
    found = {
        name: candidate for name, cause in known.items() if (candidate := _judge(cause, lowered, facts, asked)).score >= LEAST
    }
    return _ranked(found)


def _judge(cause: Cause, sources: Sequence[Lowered], facts: Facts, asked: dict[str, list[str]]) -> Candidate:
    def lines(signs: Iterable[str]) -> list[str]:
        result: list[str] = []
        for sign in signs:
            if sign not in asked:
                lines_of = relations.ask(sign[1:], facts) if sign.startswith("@") else seen(sign, sources)
                asked[sign] = [masked(line) for line in lines_of]
            result += asked[sign]
        return list(dict.fromkeys(result))

    says, shared, own = lines(cause.says), lines(cause.shared), lines(cause.facts)
    score = max(SAYS if says else 0.0, FACT if own else 0.0)
    score = score + (0.1 if says and own else 0.0) + (SHARED / 4 if shared and score else 0.0)
    if shared and not score:
        score = SHARED
    if not score:
        return Candidate(cause, 0.0, ())
    hints = lines(cause.hints)
    score += HINT * (0.3 if score >= SAYS else 1.0) if hints else 0.0
    score += MORE * (len(says) + len(own) + len(hints) - 1)
    against = [each for each in lines(cause.against) if each not in (*says, *own)]
    score -= AGAINST if against else 0.0
    because = tuple(dict.fromkeys((*own, *says, *shared, *hints)))
    return Candidate(cause, score, because, tuple(against), tuple(each for each in shared if each not in (*own, *says, *hints)))


def _ranked(found: Mapping[str, Candidate]) -> Diagnosis:
    sure = [each for each in found.values() if not each.only_shared and each.score >= MEDIUM]
    consequences = {name for each in sure for name in each.cause.explains}
    kept = [each for name, each in found.items() if name not in consequences]
    shown = [each for each in kept if not each.only_shared]
    told = {line for each in shown if each.score >= MEDIUM for line in each.because}
    rivals: list[Candidate] = []
    for each in kept:
        if each.only_shared:
            (rivals if set(each.shared) & told else shown).append(each)
    # of those that have the same message and nothing else, the first of the catalog is the most frequent
    shown.sort(key=lambda each: -each.score)
    lone = [each for each in shown if each.only_shared]
    for each in lone[1:]:
        if set(each.shared) & {line for other in lone[: lone.index(each)] for line in other.shared}:
            shown.remove(each)
            rivals.append(each)
    return Diagnosis(tuple(shown), tuple(rivals))
