"""Docker: from where, how it gets the GPUs into containers, and what its daemon.json must hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bringup import versions
from bringup.catalog import Catalog, Distro
from bringup.daemon_json import combined
from bringup.limits import memlock_to_be_had, open_files_to_be_had
from bringup.policy import Refused
from bringup.policy.repositories import repository
from bringup.settings import Settings
from bringup.survey import Survey, known
from bringup.target import Docker, Injected, Repository

ENOUGH_OPEN_FILES = 1 << 20  # what Docker gave before; loaders of data share memory by open files
UNKNOWN = "0"  # a version that could not be read: what works with any Docker is chosen


def choose_docker(survey: Survey, settings: Settings, catalog: Catalog, distro: Distro, *, gpu: bool) -> Docker:
    """Raises Refused."""
    there = is_there(survey)
    if settings.docker_source == "existing" and not there:
        raise Refused("no-docker", "gpu_docker_source is existing and there is no Docker", "install it, or set it to auto")
    packages, version, source = _source(survey, settings, catalog, distro)
    version = (known(survey["docker"]["version"]) or UNKNOWN) if there else version
    injection = choose_injection(settings, catalog, version)
    wanted = options(settings, ulimits(survey, settings, catalog, version), gpu=gpu, injection=injection)
    return Docker(packages, None if there else source, wanted, injection, settings.docker_users)


def is_there(survey: Survey) -> bool:
    """Is a Docker on the host? One whose version could not be read is there too."""
    return survey["docker"]["path"] is not None or survey["docker"]["version"] is not None


def _source(
    survey: Survey, settings: Settings, catalog: Catalog, distro: Distro
) -> tuple[tuple[str, ...], str, Repository | None]:
    """(packages, the version that they will bring, the repository that they come from)."""
    own = distro.docker
    wants_own = settings.docker_source == "distro" or (settings.docker_source == "auto" and own.ce_os is None)
    if wants_own:
        if own.own_package is None:
            raise Refused("no-docker-package", f"{distro.name} has no Docker of its own", "set gpu_docker_source to docker")
        return (own.own_package, *own.own_extra), own.own_version or UNKNOWN, None
    if own.ce_os is None:
        raise Refused("no-docker-repository", f"Docker has no repository for {distro.name}", "set gpu_docker_source to distro")
    if is_there(survey):
        return catalog.docker.packages, catalog.docker.newest, None
    found = repository(settings, catalog, "docker", distro, survey["arch"])
    return catalog.docker.packages, catalog.docker.newest, found


def choose_injection(settings: Settings, catalog: Catalog, version: str) -> Injected:
    """CDI where Docker reads the specs that the toolkit writes; the nvidia runtime with any Docker. Raises Refused."""
    floor = max(catalog.docker.cdi_since, catalog.toolkit.spec_needs_docker, key=versions.key)
    able = versions.at_least(version, floor)
    if settings.injection == "cdi" and not able:
        way = f"upgrade it to {floor} or newer, or set gpu_injection to auto or runtime"
        raise Refused("docker-without-cdi", f"Docker {version} cannot inject by CDI", way)
    if settings.injection != "auto":
        return settings.injection
    return "cdi" if able else "runtime"


def options(settings: Settings, limits: Mapping[str, Any], *, gpu: bool, injection: Injected) -> dict[str, Any]:
    """Keys of daemon.json, with the user's own (gpu_docker_options) merged in."""
    found: dict[str, Any] = {"default-shm-size": settings.shm_size}
    if gpu:
        found["runtimes"] = {"nvidia": {"path": "nvidia-container-runtime"}}
        found["default-runtime"] = settings.default_runtime
        if injection == "cdi":
            found["features"] = {"cdi": True}
    if settings.insecure_registries:
        found["insecure-registries"] = list(settings.insecure_registries)
    if settings.registry_mirrors:
        found["registry-mirrors"] = list(settings.registry_mirrors)
    if limits:
        found["default-ulimits"] = dict(limits)
    return combined(found, settings.docker_options)


def ulimits(survey: Survey, settings: Settings, catalog: Catalog, version: str) -> dict[str, Any]:
    """Limits of containers, where the host can have them: Docker's own number of open files is too low from one version on."""
    few = versions.at_least(version, catalog.docker.few_open_files_since)
    open_files = settings.open_files or (ENOUGH_OPEN_FILES if few else None)
    memlock = memlock_to_be_had(settings.memlock, survey)
    wanted = {"memlock": -1 if memlock == "unlimited" else memlock, "nofile": open_files_to_be_had(open_files, survey)}
    return {name: {"Name": name, "Soft": each, "Hard": each} for name, each in wanted.items() if each is not None}
