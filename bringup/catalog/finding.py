"""What a check of the catalog finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: where ("gpus.yml: H200") and what. An error must be mended; a warning may be true and still be in order."""

    level: Literal["error", "warning"]
    where: str
    text: str

    @property
    def line(self) -> str:
        return f"{self.level}: {self.where} {self.text}"


def error(where: str, text: str) -> Finding:
    return Finding("error", where, text)


def warning(where: str, text: str) -> Finding:
    return Finding("warning", where, text)
