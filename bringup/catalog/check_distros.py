"""The part of the check that looks at distributions, package names and repositories."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from datetime import date
from typing import get_args

from bringup import versions
from bringup.catalog import Branch, Catalog, Distro, Module, Purpose
from bringup.catalog.finding import Finding, error, warning

_FINGERPRINT = re.compile(r"[0-9A-F]{40}")
_PACKAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9+._-]*")


def check_distros(catalog: Catalog, today: date) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    branches = [branch for branch in catalog.branches if branch.is_supported(today) is not False]
    for distro in catalog.distros:
        where = f"distros.yml: {distro.id} {distro.version}"
        if (distro.id, distro.version) in seen:
            yield error(where, "is there twice")
        seen.add((distro.id, distro.version))
        yield from _ranges(distro, where)
        for branch in branches:
            yield from _names(catalog, distro, branch, where)
        if distro.first_branch is not None and catalog.branch(distro.first_branch) is None:
            yield error(where, f"begins with branch {distro.first_branch}, which drivers.yml does not have")
        for own in distro.own_drivers:
            if versions.branch_of(own.version) != own.branch:
                yield error(where, f"has its own driver {own.version} under branch {own.branch}")
            if not own.open and not own.proprietary:
                yield error(where, f"has its own driver {own.version} without any module")
        if distro.docker.ce_os is None and distro.docker.own_package is None:
            yield error(where, "has no Docker at all")
        yield from _repositories(catalog, distro, where)
    yield from _keys(catalog)


def _ranges(distro: Distro, where: str) -> Iterator[Finding]:
    """Package sets must follow each other without gap or overlap, and the last one be open."""
    sets = distro.package_sets
    for this, following in itertools.pairwise(sets):
        if this.before != following.since:
            yield error(where, f"has package names to branch {this.before} and then from {following.since}")
    if sets and sets[-1].before is not None:
        yield error(where, f"has no package names from branch {sets[-1].before} on")


def _names(catalog: Catalog, distro: Distro, branch: Branch, where: str) -> Iterator[Finding]:
    for module in get_args(Module):
        try:
            names = distro.packages(branch.number, module)
        except (KeyError, IndexError, ValueError) as problem:
            yield error(where, f"has a package name with an unknown placeholder: {problem}")
            return
        offered = catalog.module_rules.offers(branch.number, module)
        if names is None:
            if offered:
                yield error(where, f"has no package names for branch {branch.number}, {module} module")
            continue
        if not offered:
            yield error(where, f"has package names for branch {branch.number} with a {module} module, which does not exist")
        for purpose in ("driver", "persistence", "fabric_manager", "nscq", "nvlsm", "imex"):
            found = getattr(names, purpose)
            if not found:
                yield error(where, f"has no {purpose} package for branch {branch.number}, {module} module")
            for name in found:
                if not _PACKAGE.fullmatch(name):
                    yield error(where, f"has the {purpose} package {name!r}, which cannot be a package's name")


def _repositories(catalog: Catalog, distro: Distro, where: str) -> Iterator[Finding]:
    for purpose in get_args(Purpose):
        for arch in distro.nvidia_arch:
            try:
                repository = catalog.repository(purpose, distro, arch)
            except (KeyError, IndexError, ValueError) as problem:
                yield error(f"repositories.yml: {purpose}", f"has an unknown placeholder: {problem}")
                return
            if repository is None and not (purpose == "docker" and distro.docker.ce_os is None):
                yield error(where, f"has no {purpose} repository for {arch}")
    if distro.nvidia_key not in catalog.keys:
        yield error(where, f"is signed with {distro.nvidia_key}, which repositories.yml does not have")


def _keys(catalog: Catalog) -> Iterator[Finding]:
    used = {distro.nvidia_key for distro in catalog.distros}
    for name, fingerprint in catalog.keys.items():
        where = f"repositories.yml: key {name}"
        if fingerprint is None:
            yield warning(where, "has no known fingerprint: its repository cannot be trusted without one in gpu_repositories")
        elif not _FINGERPRINT.fullmatch(fingerprint.value):
            yield error(where, f"has the fingerprint {fingerprint.value}, which is not 40 hex digits")
        elif name.endswith(".pub") and not fingerprint.value.endswith(name.removesuffix(".pub").upper()):
            yield error(where, f"has the fingerprint {fingerprint.value}, which does not end in the key's own id")
        if name.endswith(".pub") and name not in used:
            yield warning(where, "signs no distribution's repository")
