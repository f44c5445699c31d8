"""Hosts that this project cannot or must not act on."""

from __future__ import annotations

import re

from bringup.catalog import Catalog, Distro
from bringup.catalog.distros import architecture
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.steps import provenance
from bringup.survey import Survey, gpus, known, unit

CONTAINERS = {"systemd-nspawn", "lxc", "lxc-libvirt", "docker", "podman", "openvz", "rkt", "proot", "container-other"}
CLOCK_TOLERANCE_S = 60  # beyond it apt calls release files "not valid yet" and TLS fails
TRIED_ARCHITECTURE = "x86_64"
A10 = "2236"  # Azure's NVadsA10_v5 sizes are vGPU slices of it; Azure has no size with a whole one
VGPU_NAME = re.compile(r"GRID |\b[A-Z]+\d+[A-Z]*-\d+[QCBA]\b")  # as nvidia-smi names vGPU profiles: A10-24Q, GRID T4-8C
GUEST_DRIVER = re.compile(r"nvidia-(linux-grid|vgpu)")  # packages of the driver for vGPU guests


def supported_distro(survey: Survey, catalog: Catalog) -> Distro:
    """The catalog's entry for the host. Raises Refused."""
    os = known(survey["os"])
    if os is None:
        raise Refused("no-os-release", "the host has no /etc/os-release that can be read", "is it a Linux host?")
    distro = catalog.distro(os["id"], os["version_id"])
    name = os["pretty_name"] or f"{os['id']} {os['version_id']}".strip() or "a host without a name"
    if distro is None:
        relatives = [each.name for each in catalog.distros if each.id == os["id"]]
        nearest = relatives or [each.name for each in catalog.distros if each.tier != "decided"]
        raise Refused("unsupported-distribution", f"{name} is not supported", f"use one that is; nearest: {', '.join(nearest)}")
    if distro.repo_id(survey["arch"]) is None:
        machines = " or ".join(distro.nvidia_arch)
        reason = f"there is no NVIDIA driver repository for {name} on {survey['arch']}"
        raise Refused("unsupported-architecture", reason, f"use a machine of {machines}")
    return distro


def untried(distro: Distro, arch: str, settings: Settings) -> Refused | None:
    """Why a plan for this distribution is only shown, and not acted on; None: it may be."""
    if distro.family == "zypper":
        reason = f"{distro.name} is planned for, and this version installs nothing with {distro.family} yet"
        return Refused("untried-distribution", reason, "take the plan as a guide, and install by hand")
    tried = distro.tier != "decided" and architecture(arch) == TRIED_ARCHITECTURE
    if not tried and "untried-distribution" not in settings.accept:
        on = "" if architecture(arch) == TRIED_ARCHITECTURE else f" on {arch}"
        reason = f"{distro.name}{on} is planned for, but no run on it was ever tried"
        return Refused("untried-distribution", reason, "try it on a host that you can lose", "untried-distribution")
    return None


def refuse_what_is_not_ours(survey: Survey, settings: Settings) -> None:
    """Containers, WSL, cluster nodes, vGPU guests, a clock that is off, a newer version's work. Raises Refused."""
    kind = known(survey["virtualization"])
    if kind == "wsl" or "microsoft-standard" in survey["kernel"].lower():
        raise Refused("wsl", "this is WSL", "the driver belongs to Windows there, and Docker Desktop brings the rest")
    container = known(survey["container"]) or (kind if kind in CONTAINERS else None)
    if container and "container-host" not in settings.accept:
        reason = f"this host is itself a container ({container}), and its kernel, modules and limits are another host's"
        raise Refused("container-host", reason, "run against the machine itself", "container-host")
    for name, what in (("kubelet.service", "Kubernetes"), ("slurmd.service", "Slurm")):
        found = unit(survey, name)
        on = found is not None and (found["enabled"].startswith("enabled") or found["active"] == "active")
        if on and "cluster-node" not in settings.accept:
            raise Refused("cluster-node", f"{name} is on, so this is a {what} node", "let its operator manage it", "cluster-node")
    _refuse_vgpu(survey)
    if abs(survey["clock_offset_s"]) > CLOCK_TOLERANCE_S:
        off = f"{abs(survey['clock_offset_s']):.0f} s {'ahead of' if survey['clock_offset_s'] > 0 else 'behind'}"
        way = "start its time synchronisation (timedatectl set-ntp true)"
        raise Refused("clock", f"the host's clock is {off} the control machine's", way)
    mine = provenance.current(survey)
    if isinstance(mine.get("schema"), int) and mine["schema"] > provenance.SCHEMA:
        reason = f"gpu-bringup {mine.get('version', '?')}, newer than this one, worked on this host"
        raise Refused("newer-provenance", reason, "use that version or a later one")


def _refuse_vgpu(survey: Survey) -> None:
    azure = survey["dmi"].get("sys_vendor") == "Microsoft Corporation"
    sliced = azure and any(each["device"] == A10 for each in gpus(survey))
    shown = VGPU_NAME.search(known(survey["driver"]["smi"]) or "")
    package = next((each for each in sorted(survey["packages"]["installed"]) if GUEST_DRIVER.match(each)), None)
    evidence = f"nvidia-smi names a {shown.group().strip()}" if shown else f"it has the package {package}" if package else ""
    if not evidence and sliced:
        evidence = "an A10 on Azure is a slice of one"
    if evidence:
        way = "install the cloud's own GRID guest driver: NVIDIA's other drivers do not work in it"
        raise Refused("vgpu", f"this is a vGPU guest ({evidence})", way)
