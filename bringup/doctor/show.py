"""A diagnosis, and the causes themselves -> what people and programs read."""

from __future__ import annotations

import re
from typing import Any

from bringup.doctor.causes import Cause, load_causes, load_families
from bringup.doctor.diagnose import Candidate, Diagnosis
from bringup.doctor.sign import split

COLLECT = (
    "message",
    "$ dmesg | grep -iE 'nvrm|nvidia|nouveau'",
    "$ nvidia-smi",
    "$ lspci -nnk -d 10de:",
    "$ uname -r",
    "$ dkms status",
    "$ docker info",
    "/etc/docker/daemon.json",
    "$ journalctl -u docker -n 50",
)


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The contract of `bringup doctor --json`."""
    return {
        "causes": [_candidate(each) for each in diagnosis.causes],
        "unknown": diagnosis.unknown,
        "also_possible": [each.cause.id for each in diagnosis.rivals],
        "collect": list(COLLECT if diagnosis.unknown else diagnosis.look),
    }


def _candidate(each: Candidate) -> dict[str, Any]:
    return {
        "id": each.cause.id,
        "title": each.cause.title,
        "confidence": each.confidence,
        "because": list(each.because),
        "against": list(each.against),
        "why_it_matters": each.cause.why,
        "remedy": {"this_tool": each.cause.ours, "by_hand": list(each.cause.by_hand)},
    }


def text_lines(diagnosis: Diagnosis) -> list[str]:
    """What a person reads on the terminal."""
    if diagnosis.unknown:
        lines = ["I don't know: nothing here shows a cause that I know."]
        return [*lines, "To collect (or let `pyinfra INVENTORY deploys/doctor.py` do it):", *(f"    {each}" for each in COLLECT)]
    lines = []
    for number, each in enumerate(diagnosis.causes, 1):
        lines += [f"{number}. {each.cause.title}", f"   {each.cause.id}, {each.confidence} confidence"]
        lines += [f"   because    {line}" for line in each.because[:6]]
        lines += [f"   against    {line}" for line in each.against[:3]]
        lines += [f"   matters    {each.cause.why}", f"   this tool  {each.cause.ours}"]
        lines += [f"   by hand    {line}" for line in each.cause.by_hand]
    if diagnosis.rivals:
        lines += [f"The same message also comes from: {', '.join(each.cause.id for each in diagnosis.rivals)}"]
        lines += ["What would tell them apart:", *(f"    {each}" for each in diagnosis.look)]
    return lines


def list_lines() -> list[str]:
    return [f"{each.id:<40} {each.title}" for each in load_causes().values()]


def page(cause: Cause, family: str) -> str:
    """The documentation of one cause, in Markdown."""
    lines = [f"# {cause.id}", "", f"{cause.title}.", "", cause.why, "", "## What shows it", ""]
    for name, signs in (
        ("shows it alone", (*cause.says, *cause.facts)),
        ("shared with other causes", cause.shared),
        ("speaks for it", cause.hints),
        ("speaks against it", cause.against),
    ):
        lines += [f"- {name}: {_sign(each)}" for each in signs]
    lines += ["", "## Remedy", "", f"This tool: {cause.ours}.", "", "By hand:", "", *(f"- `{each}`" for each in cause.by_hand)]
    if cause.look:
        lines += ["", "## What tells it from its rivals", "", *(f"- `{each}`" for each in cause.look)]
    if cause.explains:
        lines += ["", f"Beside it, these are its consequences: {', '.join(f'[{each}]({each}.md)' for each in cause.explains)}"]
    if cause.sources:
        lines += ["", f"Seen in: {', '.join(cause.sources)}"]
    return "\n".join([*lines, "", f"[{family}](index.md)", ""])


def _sign(sign: str) -> str:
    if sign.startswith("@"):
        return f"relation {sign[1:].replace('-', ' ')}"
    where, wanted, pattern = split(sign)
    return f"`{pattern}`" + (f" {'in' if wanted else 'not in'} `{where}`" if where else "")


def readable(pattern: str) -> str:
    """A message pattern as people would read it: for the index alone."""
    text = re.sub(r"\(\?[:!<=]+[^()]*\)|\\[bBsSwWdD]\*?\+?|\[[^\]]*\][*+?]?|\.\{[\d,]+\}", " … ", pattern)
    return re.sub(r"[\\^$?+*|()]", "", re.sub(r"(?: … ?)+", " … ", text)).strip(" …")


def pages() -> dict[str, str]:
    """All pages, by file name: one a cause, and the index by family and by message."""
    found = {f"{cause.id}.md": page(cause, family.about) for family in load_families() for cause in family.causes}
    lines = ["# Causes", "", "Made by `bringup doctor --docs docs/causes`; edit `bringup/catalog/causes/` instead.", ""]
    for family in load_families():
        lines += [f"## {family.about}", "", *(f"- [{each.id}]({each.id}.md): {each.title}" for each in family.causes), ""]
    lines += ["# Index by message", ""]
    messages = {
        (words, cause.id)
        for cause in load_causes().values()
        for sign in (*cause.says, *cause.shared)
        if split(sign)[0] is None and len(words := readable(sign)) > 8
    }
    lines += [f"- {words}: [{name}]({name}.md)" for words, name in sorted(messages)]
    return {**found, "index.md": "\n".join(lines) + "\n"}
