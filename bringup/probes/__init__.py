"""Programs that run inside a container on the host: standard library and torch only, sent over standard input, never imported."""

from __future__ import annotations

from pathlib import Path


def source(name: str) -> str:
    """The text of a probe (`cuda_startup`)."""
    return (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
