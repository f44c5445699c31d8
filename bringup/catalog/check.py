"""Whether the catalog agrees with itself: what loaders cannot see, since it spans entries or files, or depends on the day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from bringup import versions
from bringup.catalog import Catalog, Gpu
from bringup.catalog.check_distros import check_distros
from bringup.catalog.finding import Finding, error, warning

STALE_AFTER = timedelta(days=120)
_PCI = re.compile(r"[0-9a-f]{4}(/[0-9a-f]{4})?")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REFERENCE = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(/[a-z0-9._-]+)+:[\w.-]+")


def check(catalog: Catalog, today: date) -> list[Finding]:
    """All findings, file by file. Raises CatalogError where a file cannot be read at all."""
    parts = (_ages, _gpus, _shared_ids, _branches, _security_floors, _toolkits, _images, _floors, _container_toolkit)
    found = [finding for part in parts for finding in part(catalog, today)]
    return found + list(check_distros(catalog, today))


def _ages(catalog: Catalog, today: date) -> Iterator[Finding]:
    for file, as_of in catalog.as_of().items():
        age = today - as_of
        if age > STALE_AFTER:
            yield warning(f"{file}:", f"is of {as_of}, {age.days} days ago: look its sources up again")
        elif age < timedelta(0):
            yield error(f"{file}:", f"is of {as_of}, which is in the future")


def _twice(names: Iterable[object]) -> list[object]:
    seen: list[object] = []
    return [name for name in names if name in seen or seen.append(name)]  # type: ignore[func-returns-value]


def _driver_problem(catalog: Catalog, version: str) -> str | None:
    """Why this is not a real version of a known branch, or None."""
    if not versions.VERSION.fullmatch(version):
        return f"{version!r} is no driver version"
    branch = catalog.branch(versions.branch_of(version))
    if branch is None:
        return f"{version} is of branch {versions.branch_of(version)}, which drivers.yml does not have"
    if not versions.at_least(branch.newest, version):
        return f"{version} is newer than the newest of its branch, {branch.newest}"
    return None


def _gpus(catalog: Catalog, today: date) -> Iterator[Finding]:
    kinds: dict[str, Gpu] = {}
    for name in _twice(gpu.name for gpu in catalog.gpus):
        yield error(f"gpus.yml: {name}", "is there twice")
    for gpu in catalog.gpus:
        where = f"gpus.yml: {gpu.name}"
        for entry in gpu.pci:
            if not _PCI.fullmatch(entry):
                yield error(where, f'has the PCI id {entry!r}, which is not like "2335" or "25b6/14a9"')
        if not _CAPABILITY.fullmatch(gpu.compute_capability):
            yield error(where, f"has the compute capability {gpu.compute_capability!r}, which is not like 9.0")
        for version in filter(None, (gpu.min_driver, *gpu.min_driver_by_branch.values())):
            problem = _driver_problem(catalog, version)
            if problem:
                yield error(where, f"needs a driver that is not there: {problem}")
            elif gpu.max_branch is not None and versions.branch_of(version) > gpu.max_branch:
                yield error(where, f"needs driver {version} but has none after branch {gpu.max_branch}")
        for number, version in gpu.min_driver_by_branch.items():
            if not version.startswith(f"{number}."):
                yield error(where, f"has {version} as its lowest driver of branch {number}")
        if gpu.max_branch is not None and catalog.branch(gpu.max_branch) is None:
            yield error(where, f"ends with branch {gpu.max_branch}, which drivers.yml does not have")
        if gpu.kernel_module == "proprietary-only" and gpu.max_branch is None:
            yield error(where, "runs with the proprietary module only, but has no last branch")
        alike = kinds.setdefault(gpu.architecture, gpu)
        if (alike.kernel_module, alike.max_branch) != (gpu.kernel_module, gpu.max_branch):
            yield error(where, f"differs in kernel_module or max_branch from {alike.name} of the same architecture")


def _shared_ids(catalog: Catalog, today: date) -> Iterator[Finding]:
    """Two GPUs with one id must differ in their subdevice; at most one of them may be the rest of the id."""
    for name in _twice((entry, gpu.name) for gpu in catalog.gpus for entry in gpu.pci):
        yield error("gpus.yml:", f"{name} is there twice")
    owners: dict[str, list[str]] = {}
    for gpu in catalog.gpus:
        for entry in set(gpu.pci):
            owners.setdefault(entry, []).append(gpu.name)
    for entry, names in owners.items():
        if len(names) > 1:
            yield error(f"gpus.yml: {' and '.join(names)}", f"share the PCI id {entry}: nothing tells them apart")


def _branches(catalog: Catalog, today: date) -> Iterator[Finding]:
    numbers = [branch.number for branch in catalog.branches]
    for number in _twice(numbers):
        yield error(f"drivers.yml: branch {number}", "is there twice")
    if numbers != sorted(numbers):
        yield error("drivers.yml:", "the branches are not in order")
    for branch in catalog.branches:
        where = f"drivers.yml: branch {branch.number}"
        for version in filter(None, (branch.first_version, branch.newest)):
            if not versions.VERSION.fullmatch(version) or versions.branch_of(version) != branch.number:
                yield error(where, f"has the version {version}, which is not one of it")
        if branch.first and branch.eol and branch.first > branch.eol:
            yield error(where, f"ends on {branch.eol}, before it begins on {branch.first}")
        if branch.status == "eol" and branch.eol and branch.eol > today:
            yield error(where, f"is called eol, but ends on {branch.eol}")
        if branch.status == "supported" and branch.is_supported(today) is False:
            yield warning(where, f"ended on {branch.eol} and is still called supported")
        if branch.first and branch.first > today:
            yield error(where, f"begins on {branch.first}, which is in the future")
    if not any(branch.kind == "lts" and branch.is_supported(today) for branch in catalog.branches):
        yield error("drivers.yml:", f"has no long-term branch that is supported on {today}")


def _security_floors(catalog: Catalog, today: date) -> Iterator[Finding]:
    for number in _twice(floor.branch for floor in catalog.security_floors):
        yield error(f"drivers.yml: security floor of {number}", "is there twice")
    for floor in catalog.security_floors:
        where = f"drivers.yml: security floor of {floor.branch}"
        problem = _driver_problem(catalog, floor.version)
        if problem:
            yield error(where, f"is not there: {problem}")
        elif versions.branch_of(floor.version) != floor.branch:
            yield error(where, f"is {floor.version}, which is of another branch")
    for branch in catalog.branches:
        if branch.is_supported(today) and catalog.security_floor(branch.number) is None:
            yield warning(f"drivers.yml: branch {branch.number}", "is supported and has no security floor")


def _toolkits(catalog: Catalog, today: date) -> Iterator[Finding]:
    for name in _twice(toolkit.version for toolkit in catalog.toolkits):
        yield error(f"cuda.yml: {name}", "is there twice")
    for toolkit in catalog.toolkits:
        where = f"cuda.yml: {toolkit.version}"
        low, high = (_sm(each) for each in (toolkit.compute_capability_min, toolkit.compute_capability_max))
        for code in toolkit.sm or ():
            if not low <= code <= high:
                yield error(where, f"makes code for sm_{code}, outside of its own range sm_{low} to sm_{high}")
        for release, driver in toolkit.releases.items():
            if not release.startswith(f"{toolkit.version}."):
                yield error(where, f"has the release {release}, which is not one of it")
            if driver is not None and not versions.VERSION.fullmatch(driver):
                yield error(where, f"{release} names {driver!r}, which is no driver version")


def _sm(capability: str) -> int:
    return int(capability.replace(".", ""))


def _images(catalog: Catalog, today: date) -> Iterator[Finding]:
    for name in _twice(name for image in catalog.images for name in (image.name, image.reference)):
        yield error(f"images.yml: {name}", "is there twice")
    for image in catalog.images:
        where = f"images.yml: {image.name}"
        toolkit = catalog.cuda(image.cuda)
        if toolkit is None or toolkit.version != image.cuda:
            yield error(where, f"is made with CUDA {image.cuda}, which cuda.yml does not have")
        elif toolkit.sm is not None:
            for code in set(image.sm or ()) - set(toolkit.sm):
                yield error(where, f"has code for sm_{code}, which CUDA {image.cuda} does not make")
        if not _REFERENCE.fullmatch(image.reference):
            yield error(where, f"has the reference {image.reference!r}: a registry, a repository and a tag are needed")
        if image.digest is not None and not _DIGEST.fullmatch(image.digest):
            yield error(where, f"has the digest {image.digest!r}, which is not sha256: and 64 hex digits")
        if image.family != "cuda" and image.torch is None:
            yield error(where, "names no torch version")


def _floors(catalog: Catalog, today: date) -> Iterator[Finding]:
    boards = {gpu.name for gpu in catalog.gpus}
    for name in _twice(floor.name for floor in catalog.floors):
        yield error(f"floors.yml: {name}", "is there twice")
    for floor in catalog.floors:
        where = f"floors.yml: {floor.name}"
        if floor.board not in boards:
            yield error(where, f"is of the board {floor.board!r}, which gpus.yml does not have")
        if not 0 < floor.tolerance < 1:
            yield error(where, f"has the tolerance {floor.tolerance}: a fraction between 0 and 1 is needed")
        if floor.value.value <= 0:
            yield error(where, f"has the value {floor.value.value}")
        if (floor.gpus > 1) != (floor.link is not None):
            yield error(where, "must name a link where it is of several GPUs, and only there")


def _container_toolkit(catalog: Catalog, today: date) -> Iterator[Finding]:
    toolkit = catalog.toolkit
    if not versions.at_least(toolkit.preferred, toolkit.floor):
        yield error("toolkit.yml:", f"prefers {toolkit.preferred}, which is below its own floor {toolkit.floor}")
    for version in (toolkit.preferred, toolkit.floor):
        if version not in toolkit.releases:
            yield error("toolkit.yml:", f"has no release {version}")
