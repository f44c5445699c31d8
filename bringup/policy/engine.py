"""Container engines that the toolkit cannot serve as it serves a rootful dockerd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bringup import versions
from bringup.catalog import Catalog
from bringup.daemon_json import parse
from bringup.errors import HostError
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.steps.docker import in_swarm
from bringup.survey import Survey, installed, known

PACKAGED = ("docker.io", "docker-ce", "moby-engine", "docker")


def refuse_unfit_engine(survey: Survey, settings: Settings, catalog: Catalog) -> None:
    """Raises Refused."""
    docker = survey["docker"]
    path = docker["path"] or ""
    packaged = any(installed(survey, each) for each in PACKAGED)
    if (docker["snap"] or path.endswith("/snap") or path.startswith("/snap/")) and not packaged:
        reason = "Docker is a snap here, which sees neither the toolkit nor /etc/docker"
        raise Refused("docker-snap", reason, "snap remove docker, then run again")
    if docker["podman"]:
        way = "remove podman-docker and run again, or use podman with CDI by hand"
        raise Refused("podman", "`docker` is podman's imitation here, which has no daemon and no daemon.json", way)
    info: Mapping[str, Any] = known(docker["info"]) or {}
    options = info.get("SecurityOptions")
    if any("rootless" in str(each) for each in (options if isinstance(options, list) else [])):
        reason = "Docker is rootless here, and may not change device cgroups"
        raise Refused("docker-rootless", reason, "use a rootful dockerd, or CDI by hand")
    version = known(docker["version"])
    oldest = catalog.docker.cgroup_v2_since
    if version is not None and not versions.at_least(version, oldest):
        raise Refused("docker-too-old", f"Docker {version} does not know cgroup v2", f"upgrade it to {oldest} or newer")
    if in_swarm(info) and settings.docker_options.get("live-restore") is True:
        reason = "gpu_docker_options has live-restore, and this host is in a Docker swarm: its daemon would not start"
        raise Refused("swarm", reason, "take live-restore out, or let the host leave the swarm")


def keeps_containers(survey: Survey) -> bool:
    """Do containers live through a restart of the daemon that runs?"""
    return bool((known(survey["docker"]["info"]) or {}).get("LiveRestoreEnabled"))


def cgroup_driver(survey: Survey) -> str | None:
    """`cgroupfs` where daemon.json asks for it: an old workaround that loses the GPU's devices less, and breaks systemd's limits."""
    try:
        options = parse(known(survey["docker"]["daemon_json"])).get("exec-opts")
    except HostError:
        return None
    found = [str(each) for each in options if "native.cgroupdriver=" in str(each)] if isinstance(options, list) else []
    return found[0].partition("=")[2] if found else None
