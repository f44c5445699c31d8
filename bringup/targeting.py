"""What a host shall be: the policy of design §3, or Refused. Pure."""

from __future__ import annotations

from dataclasses import fields
from datetime import date, timedelta
from typing import Any, Literal

from bringup import versions
from bringup.catalog import Branch, Catalog, Distro, Gpu
from bringup.catalog import Repository as CatalogRepository
from bringup.daemon_json import merge
from bringup.settings import Settings
from bringup.survey import Survey, gpus, installed, known, loaded_version, module_kind, nvswitches, unit
from bringup.target import Docker, Driver, Injected, Repository, Target, Toolkit

MATURE = timedelta(days=90)  # a long-term branch is chosen once its first release is this old (design §3)
OURS = {"debian": ("12", "13")}  # distributions on which this version acts
CONTAINERS = {"systemd-nspawn", "lxc", "lxc-libvirt", "docker", "podman", "openvz", "rkt", "proot", "container-other"}
KEYRINGS = {
    "nvidia-driver": "/usr/share/keyrings/cuda-archive-keyring.gpg",
    "nvidia-toolkit": "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",
    "docker": "/etc/apt/keyrings/docker.asc",
}


class Refused(Exception):
    """Why this host cannot be planned for."""

    def __init__(self, id: str, reason: str, way_out: str, accept: str | None = None) -> None:
        super().__init__(reason)
        self.id, self.reason, self.way_out, self.accept = id, reason, way_out, accept


def make_target(survey: Survey, settings: Settings, catalog: Catalog, today: date) -> Target:
    """Raises Refused."""
    distro = supported_distro(survey, catalog)
    refuse_what_is_not_ours(survey, settings)
    boards = known_gpus(survey, settings, catalog)
    driver = choose_driver(survey, settings, catalog, distro, boards, today) if boards else None
    docker = choose_docker(survey, settings, catalog, distro, bool(boards))
    toolkit = None
    if boards:
        toolkit = Toolkit(
            packages=catalog.toolkit.packages,
            floor=catalog.toolkit.floor,
            repository=repository(settings, catalog, "nvidia-toolkit", distro, survey["arch"]),
            hold=settings.hold_packages != "none",
        )
    memlock = settings.memlock if survey["limits"]["may_raise"] else None
    return Target(
        driver=driver,
        blocked_modules=("nouveau", "nova_core") if driver and driver.source != "preinstalled" else (),
        docker=docker,
        toolkit=toolkit,
        memlock=memlock,
        images=choose_images(settings, catalog, driver, boards) if boards else (),
        reboot=settings.reboot,
        reboot_timeout_s=settings.reboot_timeout,
        lock_timeout_s=settings.lock_timeout,
        accepted=settings.accept,
        verify=settings.verify,
        expected_gpus=settings.expected_count if settings.expected_count is not None else len(boards),
        settings=chosen(settings),
    )


def chosen(settings: Settings) -> dict[str, Any]:
    """The settings that differ from their defaults, JSON-able."""
    default = Settings()
    found: dict[str, Any] = {}
    for each in fields(Settings):
        value = getattr(settings, each.name)
        if value != getattr(default, each.name):
            found[each.name] = sorted(value) if isinstance(value, frozenset) else value
    found["repositories"] = {name: override.url for name, override in settings.repositories.items()}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items() if value}


def supported_distro(survey: Survey, catalog: Catalog) -> Distro:
    os = known(survey["os"])
    if os is None:
        raise Refused("no-os-release", "the host has no /etc/os-release that can be read", "is it a Linux host?")
    distro = catalog.distro(os["id"], os["version_id"])
    if distro is None or os["version_id"] not in OURS.get(os["id"], ()):
        ours = ", ".join(f"{name} {'/'.join(releases)}" for name, releases in OURS.items())
        name = os["pretty_name"] or os["id"]
        raise Refused("unsupported-distribution", f"{name} is not supported", f"this version acts on {ours}")
    if distro.repo_id(survey["arch"]) is None:
        raise Refused(
            "unsupported-architecture", f"NVIDIA has no driver repository for {survey['arch']}", "use x86_64 or aarch64"
        )
    return distro


def refuse_what_is_not_ours(survey: Survey, settings: Settings) -> None:
    """Hosts that others manage, or that are no hosts."""
    container = known(survey["container"]) or known(survey["virtualization"])
    if container in CONTAINERS and "container-host" not in settings.accept:
        reason = f"this host is itself a container ({container}): its kernel, modules and limits are another host's"
        raise Refused("container-host", reason, "run against the machine itself", "container-host")
    if container == "wsl":
        raise Refused("wsl", "this is WSL", "the driver belongs to Windows there: use the guide of Docker Desktop")
    for name, what in (("kubelet.service", "Kubernetes"), ("slurmd.service", "Slurm")):
        found = unit(survey, name)
        if found and found["enabled"] in ("enabled", "enabled-runtime") and "cluster-node" not in settings.accept:
            raise Refused(
                "cluster-node", f"{name} is enabled: this is a {what} node", "let its operator manage it", "cluster-node"
            )
    if survey["driver"]["runfile"] and settings.driver_source != "preinstalled":
        reason = "the driver was installed by a .run file (/usr/bin/nvidia-uninstall is there): packages would land beside it"
        raise Refused("runfile", reason, "run nvidia-uninstall first, or set gpu_driver_source to preinstalled")
    if survey["docker"]["snap"] and not installed(survey, "docker.io") and not installed(survey, "docker-ce"):
        raise Refused("docker-snap", "Docker is a snap here: it cannot see the toolkit", "snap remove docker, then run again")


def known_gpus(survey: Survey, settings: Settings, catalog: Catalog) -> tuple[Gpu, ...]:
    """The catalog's records of all GPUs of the host; () only where none is expected."""
    devices = gpus(survey)
    if not devices:
        if settings.expected_count == 0:
            return ()
        hint = "attach one, or set gpu_expected_count to 0 where that is right"
        raise Refused("no-gpu", "the host has no NVIDIA GPU on its PCI bus", hint)
    found: list[Gpu] = []
    for each in devices:
        subsystem = f"{each['subsystem_vendor']}:{each['subsystem_device']}" if each["subsystem_vendor"] else None
        candidates = catalog.gpu_candidates(f"{each['vendor']}:{each['device']}", subsystem)
        if not candidates:
            id_ = f"{each['vendor']}:{each['device']}"
            raise Refused(
                "unknown-gpu", f"the GPU at {each['address']} ({id_}) is not in the catalog", "add it to bringup/catalog/gpus.yml"
            )
        found.append(candidates[0])
    return tuple(found)


def choose_driver(
    survey: Survey, settings: Settings, catalog: Catalog, distro: Distro, boards: tuple[Gpu, ...], today: date
) -> Driver:
    loaded = loaded_version(survey)
    package = survey["packages"]["installed"].get("nvidia-driver-cuda")
    ours = package is not None and package["state"] != "config-files"  # one that is only half installed is ours to finish
    if settings.driver_source == "preinstalled" or (settings.driver_source == "auto" and loaded and not ours):
        if loaded is None:
            raise Refused("no-driver", "gpu_driver_source is preinstalled and no driver is loaded", "load it, or use auto")
        kind = module_kind(survey) or "open"
        return Driver("preinstalled", loaded, kind, (), (), None, (), hold=False)
    branch, wanted = choose_branch(survey, settings, catalog, boards, today)
    kind = choose_kind(settings, catalog, boards, branch)
    names = distro.packages(branch, kind)
    if names is None:
        raise Refused("no-packages", f"{distro.name} has no {kind} packages of branch {branch}", "name another branch")
    fabric = names.fabric_manager if nvswitches(survey) and any(each.needs_fabric_manager for each in boards) else ()
    headers = distro.headers(survey["kernel"])
    if headers is None:
        raise Refused(
            "no-headers", f"kernel {survey['kernel']} is not one of {distro.name}", "boot the distribution's own kernel"
        )
    services = ["nvidia-persistenced.service"] + (["nvidia-fabricmanager.service"] if fabric else [])
    return Driver(
        source="nvidia",
        wanted=wanted,
        kind=kind,
        packages=(*names.driver, *names.persistence, *fabric),
        headers=(headers.running,),
        repository=repository(settings, catalog, "nvidia-driver", distro, survey["arch"]),
        services=tuple(services),
        hold=settings.hold_packages != "none",
    )


def usable(branch: Branch, boards: tuple[Gpu, ...]) -> str | None:
    """Why this branch cannot be used for these GPUs, or None."""
    for board in boards:
        if board.max_branch is not None and branch.number > board.max_branch:
            return f"{board.name} has no driver after branch {board.max_branch}"
        if board.min_driver is not None and versions.key(branch.newest) < versions.key(board.min_driver):
            return f"{board.name} needs driver {board.min_driver} or newer"
    return None


def choose_branch(survey: Survey, settings: Settings, catalog: Catalog, boards: tuple[Gpu, ...], today: date) -> tuple[int, str]:
    """(branch, what to ask for: the branch or an exact version)."""
    asked = settings.driver_branch
    fit = [each for each in catalog.branches if usable(each, boards) is None and each.is_supported(today)]
    if not fit:
        reason = next(filter(None, (usable(each, boards) for each in reversed(catalog.branches))), "no branch fits")
        raise Refused("no-driver-for-gpu", reason, "this GPU needs an older branch than any that is still in support")
    if asked[0].isdigit():
        branch = catalog.branch(int(asked.split(".")[0]))
        nearest = ", ".join(str(each.number) for each in fit)
        if branch is None:
            raise Refused("unknown-branch", f"there is no driver branch {asked}", f"branches that fit this host: {nearest}")
        problem = usable(branch, boards)
        if problem:
            raise Refused("branch-not-for-gpu", f"{problem}; {asked} was asked for", f"use one of {nearest}")
        if branch.is_supported(today) is False and "end-of-life" not in settings.accept:
            raise Refused(
                "end-of-life", f"driver branch {branch.number} is at its end of life", f"use one of {nearest}", "end-of-life"
            )
        floor = catalog.security_floor(branch.number)
        if "." in asked and floor and versions.key(asked) < versions.key(floor) and "below-security-floor" not in settings.accept:
            way = f"use {floor} or newer"
            raise Refused("below-security-floor", f"driver {asked} has known holes", way, "below-security-floor")
        return branch.number, asked
    loaded = loaded_version(survey)
    if asked == "auto" and loaded:
        branch = catalog.branch(versions.branch_of(loaded))
        if branch is not None and branch in fit:
            return branch.number, str(branch.number)
    kinds = {"auto": ("lts",), "lts": ("lts",), "production": ("production", "lts")}[asked]
    age = MATURE if asked == "auto" else timedelta(0)
    choice = [each for kind in kinds for each in fit if each.kind == kind and each.first and each.first + age <= today]
    choice = choice or fit
    best = max((each for each in choice if each.kind == choice[0].kind), key=lambda each: each.number)
    return best.number, str(best.number)


def choose_kind(settings: Settings, catalog: Catalog, boards: tuple[Gpu, ...], branch: int) -> Literal["open", "proprietary"]:
    kinds = {each.kernel_module for each in boards}
    if "open-only" in kinds and "proprietary-only" in kinds:
        names = ", ".join(sorted({each.name for each in boards}))
        raise Refused("no-common-module", f"{names} have no kernel module in common", "put them into different hosts")
    kind: Literal["open", "proprietary"] = "proprietary" if "proprietary-only" in kinds else "open"
    if settings.kernel_module != "auto":
        if settings.kernel_module == "open" and "proprietary-only" in kinds:
            raise Refused("module-not-for-gpu", "a GPU of this host is too old for the open module", "use auto or proprietary")
        if settings.kernel_module == "proprietary" and "open-only" in kinds:
            raise Refused("module-not-for-gpu", "a GPU of this host runs with the open module only", "use auto or open")
        kind = settings.kernel_module
    if not catalog.module_rules.offers(branch, kind):
        raise Refused("no-such-module", f"branch {branch} has no {kind} kernel module", "use auto, or another branch")
    return kind


def repository(
    settings: Settings, catalog: Catalog, name: Literal["nvidia-driver", "nvidia-toolkit", "docker"], distro: Distro, arch: str
) -> Repository:
    """The catalog's, at the user's address where one is set."""
    known_: CatalogRepository | None = catalog.repository(name, distro, arch)
    if known_ is None:
        raise Refused("no-repository", f"there is no {name} repository for {distro.name} on {arch}", "use another source")
    fingerprint = known_.fingerprint.value if known_.fingerprint else None
    url, key_url = known_.url, known_.key_url
    override = settings.repositories.get(name)
    if override:
        parts = {"distro": distro.nvidia_repo, "arch": distro.nvidia_arch.get(arch, arch)}
        url = override.url.replace("{distro}", parts["distro"]).replace("{arch}", parts["arch"])
        key_url = (override.key_url or key_url).replace("{distro}", parts["distro"]).replace("{arch}", parts["arch"])
        fingerprint = override.fingerprint or fingerprint
    if fingerprint is None:
        raise Refused(
            "no-fingerprint", f"no key fingerprint is known for {url}", f"set gpu_repositories['{name}']['fingerprint']"
        )
    return Repository(name, url, key_url, fingerprint, KEYRINGS[name], known_.suite or "/", known_.component)


def choose_docker(survey: Survey, settings: Settings, catalog: Catalog, distro: Distro, gpu: bool) -> Docker:
    there = known(survey["docker"]["version"])
    source = settings.docker_source
    if source == "existing" and there is None:
        raise Refused("no-docker", "gpu_docker_source is existing and there is no Docker", "install it, or use auto")
    packages: tuple[str, ...]
    source_repository = None
    if source == "distro" and distro.docker.own_package:
        own = distro.docker
        packages, version = (distro.docker.own_package, *own.own_extra), own.own_version or "0"
    else:
        packages, version = catalog.docker.packages, catalog.docker.newest
        if there is None:
            source_repository = repository(settings, catalog, "docker", distro, survey["arch"])
    version = there or version
    injection: Injected = "cdi" if versions.at_least(version, catalog.docker.cdi_since) else "runtime"
    if settings.injection == "cdi" and injection != "cdi":
        raise Refused(
            "docker-without-cdi",
            f"Docker {version} cannot inject by CDI",
            f"it needs {catalog.docker.cdi_since}: use auto or runtime",
        )
    if settings.injection != "auto":
        injection = settings.injection
    options: dict[str, Any] = {"default-shm-size": settings.shm_size}
    if gpu:
        options["runtimes"] = {"nvidia": {"path": "nvidia-container-runtime", "args": []}}
        options["default-runtime"] = settings.default_runtime
        if injection == "cdi":
            options["features"] = {"cdi": True}
    if settings.insecure_registries:
        options["insecure-registries"] = list(settings.insecure_registries)
    if settings.registry_mirrors:
        options["registry-mirrors"] = list(settings.registry_mirrors)
    if survey["limits"]["may_raise"]:
        limit = -1 if settings.memlock == "unlimited" else settings.memlock
        options["default-ulimits"] = {"memlock": {"Name": "memlock", "Soft": limit, "Hard": limit}}
    return Docker(packages, source_repository, merge(options, settings.docker_options), injection)


def choose_images(settings: Settings, catalog: Catalog, driver: Driver | None, boards: tuple[Gpu, ...]) -> tuple[str, ...]:
    """Full references. `auto`: the newest curated image that the branch and the GPUs can run."""
    found = []
    for name in settings.images:
        if "/" in name:
            found.append(name)
            continue
        branch = catalog.branch(int(driver.wanted.split(".")[0])) if driver else None
        fit = [each for each in catalog.images if branch and each.runs_on(branch, boards)]
        image = catalog.image(name) if name != "auto" else (fit[0] if fit else None)
        if image is None:
            names = ", ".join(each.name for each in fit)
            raise Refused(
                "unknown-image", f"there is no curated image {name} for this host", f"name a full reference or one of {names}"
            )
        found.append(image.pinned)
    return tuple(found)
