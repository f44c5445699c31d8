"""The doctor's cases, as tests/causes/ has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "causes"
FILES = ("visible.yml", "new.yml", "unseen.yml")


def read(name: str) -> Any:
    return yaml.load((FOLDER / name).read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def cases() -> list[tuple[str, dict[str, str]]]:
    """(the cause that must come first, the evidence) of each."""
    return [(each["cause"], each["evidence"]) for name in FILES for each in read(name)]


@dataclass(frozen=True)
class CommonMessage:
    """A message that several causes have: what it gives alone, and beside other facts."""

    message: str
    alone: str
    beside: tuple[tuple[str, dict[str, str]], ...]

    def cases(self) -> Iterator[tuple[str, dict[str, str]]]:
        yield self.alone, {"message": self.message}
        for cause, facts in self.beside:
            both = f"{self.message}\n{facts['message']}" if "message" in facts else self.message
            yield cause, {**facts, "message": both}


def common_messages() -> list[CommonMessage]:
    return [
        CommonMessage(each["message"], each["alone"], tuple((other["cause"], other["facts"]) for other in each["beside"]))
        for each in read("near_misses.yml")
    ]
