"""What `facts/survey.sh` printed -> its sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, TypeVar

from bringup.survey import SCHEMA, Read, Unreadable

T = TypeVar("T")
BEGIN = f"@@gpu-bringup-survey {SCHEMA}"


class SurveyError(ValueError):
    """The output is not a whole survey: one sentence that says where it stops making sense."""


class Section(NamedTuple):
    """One section: its status and its lines."""

    status: Literal["ok", "absent", "failed", "timeout"]
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Sections(dict[str, Section]):
    """All sections by name; a missing one is an error."""

    def __missing__(self, name: str) -> Section:
        raise SurveyError(f"the survey has no section {name}: it was cut off, or made by another version")

    def read(self, name: str, use: Callable[[Section], T | Unreadable | None]) -> Read[T]:
        """`use(section)` where it is ok; None where absent; else why it could not be read."""
        section = self[name]
        if section.status == "absent":
            return None
        if section.status == "timeout":
            return Unreadable(unreadable="no answer within the time limit")
        if section.status == "failed":
            return Unreadable(unreadable=" ".join(section.text.split()) or "failed")
        return use(section)

    def text(self, name: str) -> Read[str]:
        return self.read(name, lambda section: section.text)

    def lines(self, name: str) -> list[str]:
        """Lines of a section that is always there."""
        section = self[name]
        if section.status != "ok":
            raise SurveyError(f"section {name} is {section.status}: {' '.join(section.text.split())[:300]}")
        return section.lines

    def files(self, name: str) -> dict[str, str | Unreadable]:
        """The files of a section made of several: path -> text."""
        found: dict[str, str | Unreadable] = {}
        path = ""
        for line in self.lines(name):
            if line.startswith("==> "):
                path = line[4:]
                found[path] = ""
            elif line.startswith("==! "):
                found[path] = Unreadable(unreadable=line[4:])
            else:
                found[path] = f"{found[path]}{line}\n"
        return found


def split_sections(output: Iterable[str]) -> Sections:
    """Raises SurveyError when the begin or the end is missing, or a line between them belongs to no section."""
    sections = Sections()
    current: list[str] | None = None
    begun = False
    for line in (each.rstrip("\r") for each in output):
        if not begun:
            begun = line == BEGIN
            if line.startswith("@@gpu-bringup-survey ") and not begun:
                raise SurveyError(f"{line[2:]} was made by another version of gpu-bringup: this one reads schema {SCHEMA}")
        elif line == "@@end":
            return sections
        elif line.startswith("@@"):
            name, _, status = line[2:].partition(" ")
            if status not in ("ok", "absent", "failed", "timeout"):
                raise SurveyError(f"section {name} has the unknown status {status!r}")
            current = []
            sections[name] = Section(status, current)  # type: ignore[arg-type]
        elif line.startswith("|") and current is not None:
            current.append(line[1:])
        else:
            raise SurveyError(f"a line belongs to no section: {line[:80]!r}")
    raise SurveyError("the survey was cut off: its end is missing" if begun else "this is no survey: its beginning is missing")
