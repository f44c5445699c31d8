"""images.lock.yml: the digest that each tag was resolved to, so that every host and every later run gets the same image."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from bringup.errors import UserError
from bringup.references import is_reference, parts

SCHEMA = 1
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
HEAD = "# Written by gpu-bringup: what each tag was when it was first pulled. gpu_images_refresh asks the registries again.\n"


@dataclass(frozen=True)
class Inside:
    """`cuda`: `12.8`, that its programs are built with. `code`: `sm_90`, `compute_90` of its torch; () where that is not known.

    `compat`: CUDA's forward compatibility package is there; None where nobody looked.
    """

    cuda: str | None = None
    torch: str | None = None
    code: tuple[str, ...] = ()
    compat: bool | None = None


@dataclass(frozen=True)
class Platform:
    """What is pulled for one architecture, as far as the registry told it.

    `compressed_bytes` of its layers; `image_id`: the digest of its settings, by which Docker knows it on a host and in an archive;
    `environment`: of its variables those that bear on the driver
    """

    compressed_bytes: int | None = None
    image_id: str | None = None
    environment: tuple[str, ...] = ()
    inside: Inside = Inside()


@dataclass(frozen=True)
class Locked:
    """`digest` is the index's. `platforms`: by architecture (`x86_64`); empty where the registry does not tell."""

    digest: str
    resolved: str  # the day, 2026-12-01
    platforms: Mapping[str, Platform]


def parse_lock(text: str, name: str) -> dict[str, Locked]:
    """By reference with a tag. Raises UserError on what is no lock file of this schema."""
    way = f"put {name} back from your version control, or remove it to resolve all tags anew"
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: 2026-13-45 is no date
        mark = getattr(error, "problem_mark", None)
        raise UserError(f"{name} is no YAML{f' (line {mark.line + 1})' if mark else ''}: {way}") from None
    if data is None:
        return {}
    if not isinstance(data, dict) or "schema" not in data:
        raise UserError(f"{name} is no lock file of images (it names no schema): {way}")
    if data["schema"] != SCHEMA:
        raise UserError(
            f"{name} has schema {data['schema']!r}, this version reads {SCHEMA}: use the version that wrote it, or remove it"
        )
    images = data.get("images") or {}
    if not isinstance(images, dict):
        raise UserError(f"{name}: images must be a mapping from references to digests: {way}")
    return {_reference(each, name, way): _locked(entry, f"{name}: {each}", way) for each, entry in images.items()}


def _reference(value: object, name: str, way: str) -> str:
    if not isinstance(value, str) or not is_reference(value) or parts(value).tagged != value:
        raise UserError(f"{name}: {value!r} is no reference with registry and tag: {way}")
    return value


def _locked(entry: object, where: str, way: str) -> Locked:
    if not isinstance(entry, dict) or not DIGEST.fullmatch(str(entry.get("digest"))):
        found = entry.get("digest") if isinstance(entry, dict) else entry
        raise UserError(f"{where} has the digest {found!r}, which is not sha256: and 64 hexadecimal digits: {way}")
    platforms = entry.get("platforms") or {}
    if not isinstance(platforms, dict) or not all(isinstance(each, dict) for each in platforms.values()):
        raise UserError(f"{where}: platforms must be a mapping: {way}")
    return Locked(
        str(entry["digest"]), str(entry.get("resolved", "")), {str(arch): _platform(each) for arch, each in platforms.items()}
    )


def _platform(entry: Mapping[str, Any]) -> Platform:
    size, own, environment = entry.get("compressed_bytes"), entry.get("image_id"), entry.get("environment") or []
    return Platform(
        size if isinstance(size, int) else None,
        own if isinstance(own, str) else None,
        tuple(str(each) for each in environment) if isinstance(environment, list) else (),
        _inside(entry.get("inside")),
    )


def _inside(entry: object) -> Inside:
    """As far as it can be read: it is no more than what saves a pull."""
    if not isinstance(entry, dict):
        return Inside()
    cuda, torch, code, compat = (entry.get(each) for each in ("cuda", "torch", "code", "compat"))
    return Inside(
        cuda if isinstance(cuda, str) else None,
        torch if isinstance(torch, str) else None,
        tuple(each for each in code if isinstance(each, str)) if isinstance(code, list) else (),
        compat if isinstance(compat, bool) else None,
    )


def lock_text(entries: Mapping[str, Locked]) -> str:
    """The whole file, in the order of the alphabet."""
    images = {
        reference: {
            "digest": locked.digest,
            "resolved": locked.resolved,
            "platforms": {
                arch: {
                    "compressed_bytes": each.compressed_bytes,
                    "image_id": each.image_id,
                    **({"environment": list(each.environment)} if each.environment else {}),
                    **({"inside": _inside_text(each.inside)} if each.inside != Inside() else {}),
                }
                for arch, each in sorted(locked.platforms.items())
            },
        }
        for reference, locked in sorted(entries.items())
    }
    return HEAD + str(yaml.safe_dump({"schema": SCHEMA, "images": images}, sort_keys=False, width=200))


def _inside_text(inside: Inside) -> dict[str, Any]:
    given = {"cuda": inside.cuda, "torch": inside.torch, "code": list(inside.code) or None, "compat": inside.compat}
    return {name: value for name, value in given.items() if value is not None}


def pin(reference: str, digests: Mapping[str, str]) -> str:
    """The reference with the digest that its tag is locked to; as it is where it has one already, or none is known."""
    found = parts(reference)
    digest = digests.get(found.tagged or "") if found.digest is None else None
    return (
        f"{reference if found.tag and reference.endswith(found.tag) else f'{reference}:latest'}@{digest}" if digest else reference
    )
