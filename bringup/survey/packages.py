"""The part of a survey that is about packages: what is installed, held, locked, and where it comes from."""

from __future__ import annotations

import re
from typing import Literal

from bringup import version_locks, versions
from bringup.survey import Dnf, LockHolder, Package, Packages, Read, known
from bringup.survey.sections import Sections


def parse_packages(got: Sections) -> Packages:
    manager: Literal["dpkg", "rpm"] | None = "dpkg" if "dpkg_audit" in got else "rpm" if "packages" in got else None
    held = got.read("holds", lambda section: section.lines) if "holds" in got else None
    installed: dict[str, Package] = {}
    dnf: Dnf | None = _dnf(got)  # its sections are in every survey
    dnf = dnf if manager == "rpm" else None
    locks = known(dnf["version_locks"]) or [] if dnf else []
    for line in got.lines("packages") if "packages" in got else []:
        name, version, want, state, arch = (
            (line.split() + [""] * 5)[:5] if len(line.split()) >= 4 else (*line.split()[:1], *[""] * 4)
        )
        if version and dnf is not None:
            _add_rpm(installed, name, version, arch, locks)
        elif version:
            installed[name] = Package(version=version, state=state, held=want == "hold")
    if dnf is not None:
        held = [name for name, package in installed.items() if package["held"]]
    interrupted: Read[bool] = None
    if manager == "dpkg":
        audit = got.read("dpkg_audit", lambda section: bool(section.text.strip()))
        interrupted = True if got.lines("dpkg_updates") else audit
    return Packages(
        manager=manager,
        installed=installed,
        holds=held,
        locks=[_lock(line) for line in got.lines("locks") if line],
        interrupted=interrupted,
        repositories=got.files("repositories"),
        keyrings=dict(line.split(" ", 1) for line in got.lines("keyrings")),
        preferences=got.files("apt_preferences"),
        settings=got.files("apt_settings"),
        headers_offered={"yes": True, "no": False}.get(" ".join(_said(got, "headers_offered"))),
        edited_units=_said(got, "edited_units"),
        driver_candidates=_candidates(got),
        ours=_noted(got, "installed_by_us"),
        disabled=_noted(got, "disabled_by_us"),
        held_by_us=_noted(got, "held_by_us"),
        dnf=dnf,
    )


def _said(got: Sections, name: str) -> list[str]:
    """The lines of a section that one of the package managers does not have; [] where it could not be read."""
    return [line for line in got[name].lines if line] if name in got and got[name].status == "ok" else []


def _noted(got: Sections, name: str) -> list[str]:
    """The words of one of our notes on the host."""
    return got[name].text.split() if got[name].status == "ok" else []


def _dnf(got: Sections) -> Dnf:
    text = "".join(each for each in got.files("module_stream").values() if isinstance(each, str))
    values = dict(re.findall(r"^(stream|state)\s*=\s*(\S+)", text, re.M))
    return Dnf(
        version_locks=got.read("version_locks", lambda section: version_locks.entries(section.lines)),
        stream=values.get("stream") if values.get("state") == "enabled" else None,
    )


def _add_rpm(installed: dict[str, Package], name: str, version: str, arch: str, locks: list[str]) -> None:
    """Of a package that is there in several versions the newest, and where that is usual (kernels, keys) each by its full name."""
    package = Package(version=version, state="installed", held=any(version_locks.covers(each, name, version) for each in locks))
    plain = version.partition(":")[2] or version
    if name == "gpg-pubkey":
        installed[f"{name}-{plain.split('-')[0]}"] = package
        return
    if name.startswith("kernel"):
        installed[f"{name}-{plain}.{arch}"] = package
    other = installed.get(name)
    if other is None or versions.newest((version, other["version"])) == version:
        installed[name] = package


def _candidates(got: Sections) -> list[str]:
    """apt-cache madison: `name | version | source`."""
    return [fields[1].strip() for line in _said(got, "driver_candidates") if len(fields := line.split("|")) == 3]


def _lock(line: str) -> LockHolder:
    file, pid, command = line.split(" ", 2)
    return LockHolder(file=file, pid=int(pid), command=command)
