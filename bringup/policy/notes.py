"""What people should know of a plan, and nothing is refused for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bringup import version_locks, versions
from bringup.catalog import Catalog, Distro, Gpu
from bringup.command_line import keeps_v1, workarounds
from bringup.limits import overriding
from bringup.policy.engine import cgroup_driver
from bringup.policy.fit import Loaded
from bringup.policy.gpus import candidates_of, named
from bringup.policy.images import named_fits
from bringup.settings import Settings
from bringup.sources import broken_files
from bringup.steps.driver_set import base_version, foreign_packages
from bringup.steps.version_locks import foreign
from bringup.survey import Survey, gpus, installed, known, loaded_version, unit, unreadable
from bringup.target import Target

WORKAROUNDS = {  # on the kernel command line, each with what it does
    "nomodeset": "keeps nouveau from driving displays; NVIDIA's driver does not need it",
}


def notes(survey: Survey, target: Target, catalog: Catalog, distro: Distro | None, settings: Settings) -> list[str]:
    return [
        *_tried(distro),
        *_driver(survey, target, catalog),
        *_gpus(survey, target, catalog),
        *_kernels(survey, target),
        *_docker(survey, target),
        *_limits(survey, target),
        *_packages(survey, target, distro),
        *_images(survey, target, catalog, settings),
        *_reading(survey),
    ]


def _tried(distro: Distro | None) -> Iterator[str]:
    if distro is not None and distro.tier == "dressed":
        yield f"{distro.name}: whole runs were tried on hosts dressed as it alone, with its names and repositories, not on the real one"


def _driver(survey: Survey, target: Target, catalog: Catalog) -> Iterator[str]:
    loaded = loaded_version(survey)
    number = versions.branch_or_none(loaded)
    floor = catalog.security_floor(number) if number else None
    if loaded and floor and not versions.at_least(loaded, floor):
        yield f"driver {loaded} has known security holes: {floor} closes them"
    if loaded and (number is None or catalog.branch(number) is None):
        yield f"driver branch {number or loaded!r} is not in the catalog: whether it is in support and runs the images is not known"
    if (
        target.driver
        and loaded
        and number
        and target.driver.source != "preinstalled"
        and not versions.matches(loaded, target.driver.wanted)
    ):
        yield f"driver {loaded} is changed to {target.driver.wanted}"
    if target.driver and (found := foreign_packages(survey, target.driver)):
        there = survey["packages"]["installed"]
        names = ", ".join(f"{each} {there[each]['version']}" for each in found)
        yield f"{names} beside the driver {base_version(survey, target.driver)}: programs may load the wrong one"
    other = (
        [each for each in survey["driver"]["libraries"] if each != loaded] if target.driver and not target.driver.is_ours else []
    )
    if other and loaded:
        yield f"libcuda {' and '.join(other)} is there beside the loaded driver {loaded}: programs may load the wrong one"
    files = known(survey["driver"]["module_files"]) or []
    if target.driver and len({each["version"] for each in files}) > 1:
        paths = " and ".join(f"{each['path']} ({each['version']})" for each in files)
        yield f"kernel {survey['kernel']} has several nvidia modules, of which modprobe takes one: {paths}"
    for path in survey["packages"]["edited_units"]:
        way = f"keep the change in /etc/systemd/system/{path.rpartition('/')[2]}.d/"
        yield f"{path} is a package's file and was edited: the package's next version overwrites it; {way}"
    if survey["driver"]["runfile"] and target.driver and not target.driver.is_ours:
        yield "the driver was installed by a .run file: no package manager upgrades it, nor builds it for the next kernel"


def _gpus(survey: Survey, target: Target, catalog: Catalog) -> Iterator[str]:
    boards: list[Gpu] = []
    for each in gpus(survey):
        found = candidates_of(each, catalog)
        boards += found
        if len(found) > 1:
            yield f"the GPU at {each['address']} may be {' or '.join(one.name for one in found)}: its PCI id does not tell"
    services = target.driver.services if target.driver else ()
    managed = target.driver is not None and target.driver.source != "preinstalled"
    if (
        managed
        and any(each.fabric_manager == "with-nvlink5" for each in boards)
        and "nvidia-fabricmanager.service" not in services
    ):
        yield f"{named(boards)}: the fabric of less than a whole board of 8 is managed elsewhere, so no fabric manager is set up"
    engines = ["nvidia-dcgm.service"] if (dcgm := unit(survey, "nvidia-dcgm.service")) and dcgm["active"] == "active" else []
    engines += [f"container {each['name']}" for each in known(survey["docker"]["running"]) or [] if "dcgm" in each["image"]]
    if len(engines) > 1:
        yield f"{' and '.join(engines)} both want the GPUs' counters, which have one owner: profiling metrics of one of them fail"
    if managed and any(each.fabric_manager == "imex" for each in boards):
        yield "nvidia-imex is installed and not started: it needs the rack's list of nodes in /etc/nvidia-imex/nodes_config.cfg"


def _kernels(survey: Survey, target: Target) -> Iterator[str]:
    has_driver = known(survey["driver"]["module_version"]) is not None
    for kernel in survey["kernels"]:
        other = kernel["image"] and kernel["release"] != survey["kernel"]
        if has_driver and other and not kernel["nvidia_module"]:
            yield f"kernel {kernel['release']} is installed and has no nvidia module: booted into it, the host has no driver"
    if survey["reboot_required"]:
        yield "a reboot is pending from before: packages ask for it in /run/reboot-required"
    words = (known(survey["command_line"]) or "").split()
    for word, does in WORKAROUNDS.items():
        if word in words:
            yield f"the kernel command line has {word}, which {does}"
    if not target.command_line:
        for word in workarounds(words):
            does = "asks for cgroup v1" if keeps_v1([word]) else "has no effect with cgroup v2"
            yield f"the kernel command line has {word}, which {does} (gpu_clean_command_line: true takes it off)"
    for word in words:
        if re.match(r"(modprobe\.blacklist|module_blacklist|rd\.driver\.blacklist)=", word) and "nvidia" in re.split(
            "[=,]", word
        ):
            yield f"the kernel command line has {word}: the driver will not load by itself"
    blocked = [each for each in survey["driver"]["blocked_modules"] if each.startswith("nvidia")]
    if target.driver and blocked:
        yield f"{', '.join(blocked)} is blocked in modprobe.d: the driver will not load by itself"


def _docker(survey: Survey, target: Target) -> Iterator[str]:
    if target.docker.options.get("default-runtime") == "nvidia":
        yield (
            "default runtime nvidia: every container starts slower (0.18 s measured on an H200 host), and images that set "
            "NVIDIA_VISIBLE_DEVICES=all see all GPUs unasked (gpu_default_runtime: runc)"
        )
    if target.docker.users:
        yield f"{', '.join(target.docker.users)} in group docker: whoever may use Docker is root on this host"
    version = known(survey["docker"]["version"])
    wanted = target.settings.get("docker_source")
    if version and wanted in ("docker", "distro") and installed(survey, target.docker.packages[0]) is None:
        yield f"Docker {version} is there and stays: gpu_docker_source {wanted} is for hosts without one"
    if cgroup_driver(survey) == "cgroupfs":
        yield "daemon.json has native.cgroupdriver=cgroupfs: systemd and Docker then fight over the same control groups"
    if re.search(r"^\s*no-cgroups\s*=\s*true", known(survey["toolkit_config"]) or "", re.M):
        stays = (
            f", and stays because of {', '.join(survey['rootless'])}, where a rootless Docker needs it"
            if survey["rootless"]
            else ""
        )
        yield f"no-cgroups = true in /etc/nvidia-container-runtime/config.toml: by the old hook, containers then get no GPU device{stays}"
    if target.driver and known(survey["selinux"]) == "enforcing":
        yield "SELinux enforces: containers that it confines need the boolean container_use_devices (setsebool -P container_use_devices on)"


def _limits(survey: Survey, target: Target) -> Iterator[str]:
    if target.memlock is not None:
        yield from (f"{each} wins over what is set here (memlock {target.memlock})" for each in overriding(survey))


def _packages(survey: Survey, target: Target, distro: Distro | None) -> Iterator[str]:
    for broken in broken_files(survey["packages"]["repositories"]) if target.family == "apt" else []:
        yield f"{broken.path} line {broken.line} is no package source ({broken.text!r}): apt stops at it, and this run works around it"
    held = [
        name for name in (target.driver.packages if target.driver else ()) if name in (known(survey["packages"]["holds"]) or [])
    ]
    wrong = [each for each in held if (found := survey["packages"]["installed"].get(each)) and target.driver
             and not versions.matches(found["version"], target.driver.wanted)]  # fmt: skip
    if wrong:
        yield f"{', '.join(wrong)} is held at another version, and is released for the change"
    dnf = survey["packages"]["dnf"]
    if target.driver and target.driver.stream and dnf and dnf["stream"] not in (None, target.driver.stream.split(":")[1]):
        yield f"the module stream nvidia-driver:{dnf['stream']} is enabled on this host, and is changed to {target.driver.stream}"
    ours = [each for each in target.driver.packages if each not in target.driver.others] if target.driver else []
    for entry in foreign(survey):
        if any(version_locks.is_about(entry, name) for name in ours):
            yield f"dnf's version lock {entry} is somebody else's, and stays"
    if distro is None or distro.family != "dnf" or target.driver is None or target.driver.source == "preinstalled":
        return
    lists = "\n".join(text for text in survey["packages"]["repositories"].values() if isinstance(text, str))
    for name in distro.extra_repositories:
        if not _is_enabled(lists, name):
            yield f"the repository {name}, which dkms and what it needs come from, is not enabled"


def _is_enabled(lists: str, name: str) -> bool:
    """Is there a section of this name (crb is codeready-builder on RHEL, powertools on 8) that is switched on?"""
    names = {"crb": r"[^]]*(?:crb|codeready-builder|powertools)[^]]*"}.get(name, re.escape(name))
    blocks = re.findall(rf"^\[({names})\]([^\[]*)", lists, re.M | re.I)
    return any(not re.search(r"^enabled\s*=\s*0", text, re.M) for title, text in blocks if not re.search("debug|source", title))


def _images(survey: Survey, target: Target, catalog: Catalog, settings: Settings) -> Iterator[str]:
    """What is not known of the images that are named, and what runs only by forward compatibility."""
    driver = Loaded.of(target.driver.wanted, catalog) if target.driver else None
    if driver is None:
        return
    boards = tuple({one.name: one for each in gpus(survey) for one in candidates_of(each, catalog)}.values())
    for image, found in named_fits(settings, catalog, driver, boards, survey["arch"]):
        if found.runs is None:
            yield found.why
        elif found.forward:
            yield f"{image.name} runs by forward compatibility alone: {found.why}"


def _reading(survey: Survey) -> Iterator[str]:
    unread = unreadable(survey["secure_boot"])
    if unread:
        yield f"whether Secure Boot is on could not be read ({unread})"
    if not survey["root"]:
        yield "surveyed without root: what needs it could not be read"
