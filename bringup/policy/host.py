"""Hosts that this project cannot or must not act on."""

from __future__ import annotations

import re

from bringup.catalog import Catalog, Distro
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.steps import provenance
from bringup.survey import Survey, gpus, installed, known, unit

CONTAINERS = {"systemd-nspawn", "lxc", "lxc-libvirt", "docker", "podman", "openvz", "rkt", "proot", "container-other"}
CLOCK_TOLERANCE_S = 60  # beyond it apt calls release files "not valid yet" and TLS fails
A10 = "2236"  # Azure's NVadsA10_v5 sizes are vGPU slices of it; Azure has no size with a whole one
VGPU_NAME = re.compile(r"GRID |\b[A-Z]+\d+[A-Z]*-\d+[QCBA]\b")  # as nvidia-smi names vGPU profiles: A10-24Q, GRID T4-8C


def supported_distro(survey: Survey, settings: Settings, catalog: Catalog) -> Distro:
    """The catalog's entry for the host. Raises Refused."""
    os = known(survey["os"])
    if os is None:
        raise Refused("no-os-release", "the host has no /etc/os-release that can be read", "is it a Linux host?")
    distro = catalog.distro(os["id"], os["version_id"])
    name = os["pretty_name"] or f"{os['id']} {os['version_id']}"
    if distro is None:
        relatives = [each.name for each in catalog.distros if each.id == os["id"]]
        nearest = relatives or [each.name for each in catalog.distros if each.tier != "decided"]
        raise Refused("unsupported-distribution", f"{name} is not supported", f"nearest: {', '.join(nearest)}")
    if distro.repo_id(survey["arch"]) is None:
        raise Refused(
            "unsupported-architecture", f"there is no NVIDIA driver repository for {name} on {survey['arch']}", "use x86_64"
        )
    if distro.tier == "decided" and "untried-distribution" not in settings.accept:
        reason = f"{name} is planned for, but no run on it was ever tried"
        raise Refused("untried-distribution", reason, "try it on a host that you can lose", "untried-distribution")
    return distro


def refuse_what_is_not_ours(survey: Survey, settings: Settings) -> None:
    """Containers, WSL, cluster nodes, vGPU guests, a clock that is off, a newer version's work. Raises Refused."""
    kind = known(survey["virtualization"])
    container = known(survey["container"]) or kind
    if kind == "wsl":
        raise Refused("wsl", "this is WSL", "the driver belongs to Windows there, and Docker Desktop brings the rest")
    if container in CONTAINERS and "container-host" not in settings.accept:
        reason = f"this host is itself a container ({container}): its kernel, modules and limits are another host's"
        raise Refused("container-host", reason, "run against the machine itself", "container-host")
    for name, what in (("kubelet.service", "Kubernetes"), ("slurmd.service", "Slurm")):
        found = unit(survey, name)
        if (
            found
            and (found["enabled"].startswith("enabled") or found["active"] == "active")
            and "cluster-node" not in settings.accept
        ):
            raise Refused("cluster-node", f"{name} is on: this is a {what} node", "let its operator manage it", "cluster-node")
    _refuse_vgpu(survey)
    if abs(survey["clock_offset_s"]) > CLOCK_TOLERANCE_S:
        off = f"{abs(survey['clock_offset_s']):.0f} s {'ahead of' if survey['clock_offset_s'] > 0 else 'behind'}"
        raise Refused(
            "clock",
            f"the host's clock is {off} the control machine's",
            "start its time synchronisation (timedatectl set-ntp true)",
        )
    newer = provenance.current(survey).get("schema", 0)
    if isinstance(newer, int) and newer > provenance.SCHEMA:
        version = provenance.current(survey).get("version", "?")
        raise Refused(
            "newer-provenance",
            f"gpu-bringup {version}, newer than this one, worked on this host",
            "use that version or a later one",
        )


def _refuse_vgpu(survey: Survey) -> None:
    azure = survey["dmi"].get("sys_vendor") == "Microsoft Corporation"
    sliced = azure and any(each["device"] == A10 for each in gpus(survey))
    named = VGPU_NAME.search(known(survey["driver"]["smi"]) or "")
    if sliced or named:
        evidence = f"nvidia-smi names a {named.group().strip()}" if named else "an A10 on Azure is a slice of one"
        raise Refused(
            "vgpu",
            f"this is a vGPU guest ({evidence})",
            "install the cloud's own GRID guest driver: NVIDIA's other drivers do not work in it",
        )


def refuse_unfit_engine(survey: Survey) -> None:
    """Engines that the toolkit cannot serve as it serves a rootful dockerd. Raises Refused."""
    docker = survey["docker"]
    path = docker["path"] or ""
    packaged = installed(survey, "docker.io") or installed(survey, "docker-ce") or installed(survey, "moby-engine")
    if (docker["snap"] or path.endswith("/snap") or path.startswith("/snap/")) and not packaged:
        raise Refused(
            "docker-snap",
            "Docker is a snap here: it sees neither the toolkit nor /etc/docker",
            "snap remove docker, then run again",
        )
    if docker["podman"]:
        raise Refused("podman", "`docker` is podman here", "remove podman-docker and run again, or use podman with CDI by hand")
    options = (known(docker["info"]) or {}).get("SecurityOptions") or []
    if any("rootless" in str(each) for each in options):
        raise Refused(
            "docker-rootless",
            "Docker is rootless here: it may not change device cgroups",
            "use a rootful dockerd, or CDI by hand",
        )
