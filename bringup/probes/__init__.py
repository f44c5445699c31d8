"""Programs that run inside a container on the host: standard library and torch only, sent over standard input, never imported.

One that is made of several files travels as one piece: its parts are modules of their own there, made by a few lines before it.
"""

from __future__ import annotations

from pathlib import Path

PARTS = {"gpu_benchmark": ("gpu_nvml", "gpu_metrics")}  # in the order in which they import each other
MODULE = """\
import sys, types
part = sys.modules[{name!r}] = types.ModuleType({name!r})
exec(compile({text!r}, {name!r}, "exec"), part.__dict__)
"""


def source(name: str) -> str:
    """The text of a probe (`cuda_startup`), with its parts."""
    before = [MODULE.format(name=each, text=_text(each)) for each in PARTS.get(name, ())]
    return "".join([*before, _text(name)])


def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
