"""Settings of images that are mappings: the user's own images with their facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from bringup.catalog.images import Image
from bringup.errors import nearest, wrong
from bringup.references import is_reference

OWN = ("reference", "cuda", "torch", "sm", "ptx", "architectures", "digest", "flavour", "compat", "python", "compressed_bytes",
       "unpack_ratio", "note")  # fmt: skip
ARCHITECTURES = ("x86_64", "aarch64")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def own_images(key: str, value: object) -> Mapping[str, Image]:
    """`{"train": {"reference": "registry.example/train:7", "cuda": "12.8", "torch": "2.9.1", "sm": [90], "ptx": [90]}}`."""
    if not isinstance(value, Mapping):
        raise wrong(key, value, "it must be a mapping from a name to the facts of an image")
    return {str(name): _own_image(f"{key}[{name!r}]", str(name), facts) for name, facts in value.items()}


def _own_image(key: str, name: str, facts: object) -> Image:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) or name == "auto":
        raise wrong(key, name, "the name of an own image has small letters, digits, dots and hyphens, and is not auto")
    if not isinstance(facts, Mapping):
        raise wrong(key, facts, "it must be a mapping with reference and cuda")
    for each in facts:
        if each not in OWN:
            raise wrong(key, each, f"the facts of an image are {', '.join(OWN)}{nearest(str(each), OWN)}")
    for each in ("reference", "cuda"):
        if not isinstance(facts.get(each), str):
            raise wrong(f"{key}[{each!r}]", facts.get(each), "it is needed, as text in quotes")
    values: dict[str, Any] = dict(facts)
    if not is_reference(values["reference"]) or "@" in values["reference"]:
        raise wrong(f"{key}['reference']", values["reference"], "it must be host/path:tag in lower case; a digest goes to digest")
    if not re.fullmatch(r"\d{2}\.\d{1,2}", values["cuda"]):
        raise wrong(f"{key}['cuda']", values["cuda"], "it must be a version such as 12.8")
    for each in ("sm", "ptx"):
        if values.get(each) is not None:
            values[each] = _codes(f"{key}[{each!r}]", values[each])
    digest = values.get("digest")
    if digest is not None and not (isinstance(digest, str) and DIGEST.fullmatch(digest)):
        raise wrong(f"{key}['digest']", digest, "it must be sha256: and 64 hexadecimal digits")
    values["architectures"] = _choices(f"{key}['architectures']", values.get("architectures", ["x86_64"]), ARCHITECTURES)
    values["flavour"] = _choices(f"{key}['flavour']", [values.get("flavour", "runtime")], ("base", "runtime", "devel"))[0]
    if values.get("compat") is not None:
        values["compat"] = _texts(f"{key}['compat']", values["compat"])
    for each, kinds, what in (("compressed_bytes", int, "a whole number of bytes"), ("unpack_ratio", int | float, "a number")):
        found = values.get(each)
        if found is not None and (isinstance(found, bool) or not isinstance(found, kinds) or found <= 0):
            raise wrong(f"{key}[{each!r}]", found, f"it must be {what}, more than 0")
    for each in ("torch", "python", "note"):
        if values.get(each) is not None and not isinstance(values[each], str):
            raise wrong(f"{key}[{each!r}]", values[each], "it must be text: put quotes around it")
    defaults: dict[str, Any] = {"name": name, "family": "own", "digest": None, "torch": None, "sm": None, "sources": ()}
    known = {each.name for each in fields(Image)}
    return Image(**{each: given for each, given in {**defaults, **values}.items() if each in known})


def _codes(key: str, value: object) -> tuple[int, ...]:
    """90, "9.0", "sm_90" and "compute_90" are the same; sm_90a runs on 9.0 alone and counts as no general code."""
    if not isinstance(value, list | tuple):
        raise wrong(key, value, "it must be a list such as [80, 90]")
    found = []
    for each in value:
        text = re.sub(r"^(sm|compute)_", "", str(each)).replace(".", "")
        if isinstance(each, bool) or not re.fullmatch(r"\d{2,3}", text):
            raise wrong(key, each, "it must be a number such as 90 (leave out sm_90a and the like: they are not for other GPUs)")
        found.append(int(text))
    return tuple(found)


def _texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise wrong(key, value, 'it must be a list of texts, such as ["a", "b"]')
    return tuple(value)


def _choices(key: str, value: object, choices: tuple[str, ...]) -> tuple[str, ...]:
    found = _texts(key, value)
    for each in found:
        if each not in choices:
            raise wrong(key, each, f"it must be one of {', '.join(choices)}{nearest(each, choices)}")
    return found
