"""One entry of the catalog as text, found by what people call it."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from bringup.catalog import Catalog, Sourced
from bringup.catalog.cuda import load_cuda
from bringup.catalog.distros import load_distros
from bringup.catalog.drivers import load_drivers
from bringup.catalog.gpus import NVIDIA, load_gpus
from bringup.catalog.images import load_images
from bringup.catalog.records import Month, Source
from bringup.errors import UserError

_PCI = re.compile(r"(?:(?:0x)?10de:)?(?:0x)?([0-9a-f]{4})(?:[/,: ](?:(?:0x)?[0-9a-f]{4}:)?(?:0x)?([0-9a-f]{4}))?")
_VERSION = re.compile(r"\d{3}(\.\d+)*")


def show(catalog: Catalog, kind: str, key: str, today: date) -> str:
    """The entry (all of them, where several share a PCI id). Raises UserError, with the nearest known key, when there is none."""
    finder, sources = KINDS[kind]
    records = finder(catalog, key, today)
    lines = [line for record in records for line in [*_lines(record), ""]]
    used = _used_sources(records)
    known = sources(catalog.folder)
    lines += [f"{name}: {known[name].text}, {known[name].as_of}" for name in known if name in used]
    return "\n".join(lines) + "\n"


def _missing(kind: str, key: str, known: Iterable[str]) -> UserError:
    """Names the nearest known keys: the ones that hold the key, else the one that is written most like it."""
    names = list(dict.fromkeys(known))
    near = [name for name in names if key.lower() in name.lower()][:4]
    if not near:
        folded = {name.lower(): name for name in names}
        near = [folded[name] for name in difflib.get_close_matches(key.lower(), folded, n=1, cutoff=0.0)]
    hint = f"; the nearest: {', '.join(near)}" if near else ""
    return UserError(f"the catalog has no {kind} {key!r}{hint}")


def _find_gpu(catalog: Catalog, key: str, today: date) -> list[Any]:
    named = [gpu for gpu in catalog.gpus if gpu.name.lower() == key.lower()]
    match = _PCI.fullmatch(key.lower())
    if named or match is None:
        if not named:
            raise _missing("GPU", key, [gpu.name for gpu in catalog.gpus])
        return named
    found = catalog.gpu_candidates(f"{NVIDIA}:{match[1]}", match[2])
    if found:
        shared = {f"{NVIDIA}:{match[1]}": f"shared by {len(found)} GPUs, the subdevice tells them apart"}
        return [shared, *found] if len(found) > 1 else [*found]
    if any(key.lower() in gpu.name.lower() for gpu in catalog.gpus):  # "a100" could be either
        raise _missing("GPU", key, [gpu.name for gpu in catalog.gpus])
    devices = {entry.partition("/")[0] for gpu in catalog.gpus for entry in gpu.pci}
    nearest = min(devices, key=lambda device: abs(int(device, 16) - int(match[1], 16)))
    raise _missing("GPU", key, [f"{NVIDIA}:{nearest}"])


def _find_driver(catalog: Catalog, key: str, today: date) -> list[Any]:
    branch = catalog.branch(int(key.split(".")[0])) if _VERSION.fullmatch(key) else None
    if branch is None:
        numbers = [branch.number for branch in catalog.branches]
        if key.isdigit():
            numbers.sort(key=lambda number: abs(number - int(key)))
        raise _missing("driver branch", key, map(str, numbers[:1] if key.isdigit() else numbers))
    support = {True: "supported", False: "ended", None: "end not known"}[branch.is_supported(today)]
    modules = [module for module in ("open", "proprietary") if catalog.module_rules.offers(branch.number, module)]
    floor = next((floor for floor in catalog.security_floors if floor.branch == branch.number), None)
    derived = {
        f"on {today}": support,
        "kernel modules": ", ".join(modules),
        "security floor": floor.version if floor else "none known",
    }
    if floor and floor.open_issues:
        derived["unfixed"] = "bulletin " + ", ".join(floor.open_issues)
    return [branch, derived]


def _find_cuda(catalog: Catalog, key: str, today: date) -> list[Any]:
    found = catalog.cuda(key)
    if found is None:
        raise _missing("CUDA toolkit", key, [toolkit.version for toolkit in catalog.toolkits])
    return [found]


def _find_image(catalog: Catalog, key: str, today: date) -> list[Any]:
    found = catalog.image(key) or catalog.image(f"docker.io/{key}")
    if found is None:
        raise _missing("image", key, [image.name for image in catalog.images])
    return [found]


def _find_distro(catalog: Catalog, key: str, today: date) -> list[Any]:
    match = re.fullmatch(r"([a-z]+)[ :/-]?([\d.]+)", key.lower())
    found = catalog.distro(match[1], match[2]) if match else None
    if found is None:
        raise _missing("distribution", key, [f"{distro.id} {distro.version}" for distro in catalog.distros])
    return [found]


Finder = Callable[[Catalog, str, date], list[Any]]
KINDS: Mapping[str, tuple[Finder, Callable[[Path], Mapping[str, Source]]]] = {
    "gpu": (_find_gpu, lambda folder: load_gpus(folder).sources),
    "driver": (_find_driver, lambda folder: load_drivers(folder).sources),
    "cuda": (_find_cuda, lambda folder: load_cuda(folder).sources),
    "image": (_find_image, lambda folder: load_images(folder).sources),
    "distro": (_find_distro, lambda folder: load_distros(folder).sources),
}


def _fields(record: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(record, Mapping):
        yield from ((str(name), value) for name, value in record.items())
        return
    for field in dataclasses.fields(record):
        yield field.metadata.get("key", field.name), getattr(record, field.name)


def _lines(record: Any, indent: str = "") -> Iterator[str]:
    """ "name: value" lines; what is empty is left out, records in records are indented."""
    for name, value in _fields(record):
        if value in (None, "", (), {}) or name == "sources":
            continue
        if isinstance(value, Mapping) or (dataclasses.is_dataclass(value) and not isinstance(value, Sourced | Month)):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, tuple) and dataclasses.is_dataclass(value[0]):
            yield f"{indent}{name}:"
            for entry in value:
                first, *rest = _lines(entry, indent + "    ")
                yield f"{indent}  - {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{name}: {_plain(value)}"


def _plain(value: Any) -> str:
    if isinstance(value, Sourced):
        number = f"{value.value:g}" if isinstance(value.value, float) else str(value.value)
        return f"{number} ({value.provenance}, {value.source} {value.as_of})"
    if isinstance(value, Month):
        return f"{value.first_day}" if value.day else f"{value.year}-{value.month:02}"
    if isinstance(value, tuple):
        return ", ".join(_plain(entry) for entry in value)
    return str(value)


def _used_sources(value: Any) -> set[str]:
    if isinstance(value, Sourced):
        return {value.source}
    if isinstance(value, str | int | float | date | None):
        return set()
    if isinstance(value, list | tuple):
        return {name for entry in value for name in _used_sources(entry)}
    used = set(getattr(value, "sources", ()))
    for _, entry in _fields(value):
        used |= _used_sources(entry)
    return used
