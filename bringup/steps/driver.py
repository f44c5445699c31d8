"""Steps of kernel and driver."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bringup import versions
from bringup.errors import HostError
from bringup.steps import Change, Skip, command_line, edited
from bringup.steps.kernel_modules import next_kernel
from bringup.steps.packages import PREDICTED, missing, repository, with_installed
from bringup.survey import Survey, gpus, installed, installed_kind, known, loaded_version, module_kind, unit, unreadable
from bringup.target import Driver, Target

SOURCES_FILE = "/etc/apt/sources.list.d/gpu-bringup-nvidia-driver.sources"
PREFERENCES_FILE = "/etc/apt/preferences.d/gpu-bringup-driver"
DAEMONS = {"nvidia-persistenced.service", "nvidia-fabricmanager.service"}  # ours: they have the modules open, and may be stopped
PERSISTENCE = "nvidia-persistenced.service"
PERSISTENCE_FILE = f"/etc/systemd/system/{PERSISTENCE}.d/90-gpu-bringup.conf"
SERVICE_BASE_S, SERVICE_PER_GPU_S = 120, 60
MODPROBE_FILE = "/etc/modprobe.d/gpu-bringup-nouveau.conf"


def preferences(driver: Driver) -> str:
    """apt's pin for the whole driver set: dependencies too must come at the wanted branch, though the repository has newer ones.

    995 is above every other pin for these packages, NVIDIA's own (600) included, and below 1000: nothing is downgraded by it. A
    distribution's own driver is older than what NVIDIA's repository has left on a host: 1001 has it all the same.
    """
    names = "Package: *nvidia* libcuda* libnvcuvid* libnvoptix* libxnvctrl*\n"
    if driver.origin is not None:  # the first record that fits counts: the container toolkit comes from elsewhere
        toolkit = "Package: nvidia-container-toolkit* libnvidia-container*\nPin: release *\nPin-Priority: 500\n\n"
        return f"{toolkit}{names}Pin: release o={driver.origin}\nPin-Priority: 1001\n"
    version = driver.wanted + ("-*" if "." in driver.wanted else ".*")
    return f"{names}Pin: version {version}\nPin-Priority: 995\n"


def is_pinned(survey: Survey, driver: Driver) -> bool:
    """The survey leaves blank lines and comments out."""
    found, wanted = survey["packages"]["preferences"].get(PREFERENCES_FILE), preferences(driver)
    return isinstance(found, str) and [line for line in found.split("\n") if line] == [
        line for line in wanted.split("\n") if line
    ]


def driver_repository(survey: Survey, driver: Driver) -> Change | None:
    """The source of the driver, and the pin. A source of ours that the driver no longer comes from goes."""
    if driver.repository is None:
        return _own_archive(survey, driver)
    change = repository(survey, driver.repository)
    if driver.repository.family != "apt":  # there, versions are kept by a module stream, and by dnf's locks later
        return _stream(survey, driver, change)
    if is_pinned(survey, driver):
        return change
    after = edited(change.after if change else survey)
    after["packages"]["preferences"][PREFERENCES_FILE] = preferences(driver)
    why = f"{PREFERENCES_FILE} does not pin {driver.wanted}"
    return Change(f"{change.why} and {why}" if change else why, change.what if change else "pin the driver's packages", after)


def _stream(survey: Survey, driver: Driver, change: Change | None) -> Change | None:
    """Where the repository is one of module streams, dnf sees only the packages of the one that is enabled."""
    dnf = survey["packages"]["dnf"]
    if driver.stream is None or dnf is None:
        return change
    module, _, wanted = driver.stream.partition(":")
    if dnf["stream"] == wanted:
        return change
    after = edited(change.after if change else survey)
    if after["packages"]["dnf"]:
        after["packages"]["dnf"]["stream"] = wanted
    why = f"the module stream {module}:{dnf['stream']} is enabled" if dnf["stream"] else "no module stream is enabled"
    what = f"enable {driver.stream}"
    return Change(f"{change.why} and {why}" if change else why, f"{change.what}, {what}" if change else what, after)


def _own_archive(survey: Survey, driver: Driver) -> Change | None:
    if driver.origin is None:
        return None
    why = [f"{SOURCES_FILE} is of NVIDIA's driver"] if SOURCES_FILE in survey["packages"]["repositories"] else []
    if not is_pinned(survey, driver):
        why.append(f"{PREFERENCES_FILE} does not pin the driver to {driver.origin}'s own archive")
    if not why:
        return None
    after = edited(survey)
    after["packages"]["preferences"][PREFERENCES_FILE] = preferences(driver)
    after["packages"]["repositories"].pop(SOURCES_FILE, None)
    return Change(" and ".join(why), f"take the driver from {driver.origin}'s own archive", after)


def kernel_headers(survey: Survey, driver: Driver) -> Change | None:
    """Headers of the running kernel, or apt succeeds and no module is there after it; and what brings those of the next one.

    Where the running kernel's are gone from the archive and another one is booted next, only that one's: the missing module says so.
    """
    there = any(each["release"] == survey["kernel"] and each["headers"] for each in survey["kernels"])
    following = next_kernel(survey)
    gone = survey["packages"]["headers_offered"] is False and following is not None and following["release"] != survey["kernel"]
    lacking = missing(survey, driver.headers[1:] if there or gone else driver.headers)
    if not lacking:  # installed, and yet no headers: the missing module says so
        return None
    after = with_installed(survey, lacking)
    for each in after["kernels"]:
        of_running = each["release"] == survey["kernel"] and not gone
        each["headers"] = each["headers"] or of_running or each["release"] == (following and following["release"])
    why = (
        f"kernel {survey['kernel']} has no headers"
        if not there and not gone
        else "the next kernel would come without headers, and so without a driver"
    )
    return Change(why, f"install {', '.join(lacking)}", after)


def headers_to_be_had(survey: Survey, headers: tuple[str, ...], offered: Mapping[str, str]) -> tuple[str, ...]:
    """Without the running kernel's (the first) where they are gone from the archive and another kernel will be booted, which can have the
    module. Raises HostError for all else that apt does not have."""
    absent = [each for each in headers if each not in offered and installed(survey, each) is None]
    following = next_kernel(survey)
    if absent == [headers[0]] and following is not None and following["release"] != survey["kernel"]:
        return headers[1:]
    if absent:
        way = "install the distribution's newest kernel with its headers, boot it, and run this again"
        raise HostError(f"no package source has {' and '.join(absent)} for the running kernel {survey['kernel']}: {way}")
    return headers


def check_offered(driver: Driver, offered: Mapping[str, str]) -> None:
    """Raises HostError where the distribution's archive would not give the wanted driver: it is said before anything is installed."""
    for each in driver.packages:
        version = offered.get(each)
        if version is None:
            raise HostError(f"no package source has {each}: is non-free enabled on the host, and is the archive reachable?")
        if each in driver.versioned and versions.is_driver(version) and not versions.matches(version, driver.wanted):
            reason = f"apt would install {each} {version}, and driver {driver.wanted} is wanted"
            raise HostError(
                f"{reason}: name {versions.upstream_of(version)} in gpu_driver_branch, or disable the source that it is from"
            )


def nouveau_out(survey: Survey, target: Target) -> Change | None:
    """Kernel modules that would take the GPU before NVIDIA's are blocked, and the initramfs is made anew."""
    free = [each for each in target.blocked_modules if each not in survey["driver"]["blocked_modules"]]
    stale = bool(target.blocked_modules) and survey["driver"]["initramfs_stale"] is True
    if not free and not stale:
        return None
    after = edited(survey)
    after["driver"]["blocked_modules"] += free
    after["driver"]["initramfs_stale"] = survey["driver"]["initramfs_stale"] and False
    if not free:
        return Change(
            "the initramfs is older than the list of blocked modules: nouveau would come back from it", "make it anew", after
        )
    return Change(f"{', '.join(free)} may take the GPU at the next boot", f"block {', '.join(free)} in {MODPROBE_FILE}", after)


def nouveau_loaded(survey: Survey, target: Target) -> list[str]:
    """Loaded modules that are to be out; `nova_core` is the in-tree Rust driver."""
    return [each for each in target.blocked_modules if each in survey["modules"]]


def driver_loaded(survey: Survey, target: Target) -> Change | None:
    """Load the modules, or load them anew where the old ones are idle; what stands in the way of that is for the reboot step."""
    module = known(survey["driver"]["module_version"])
    loaded = loaded_version(survey)
    if module is None or nouveau_loaded(survey, target):
        return None
    if loaded is not None and loaded != module:
        if not reloadable(survey):
            return None
        why, what = (
            f"driver {loaded} is loaded, {module} is installed, and nothing uses the GPU",
            "unload the old modules, load the new ones",
        )
    elif loaded is None:
        why, what = "no driver is loaded", "modprobe nvidia, nvidia-uvm"
    elif "nvidia_uvm" not in survey["modules"]:
        why, what = "nvidia_uvm is not loaded: CUDA would fail while nvidia-smi works", "modprobe nvidia-uvm"
    else:
        return None
    after = edited(survey)
    if loaded != module:
        _load(after)
    if loaded not in (None, module):  # what is stopped to unload them
        units = known(after["units"]) or {}
        for each in units.keys() & DAEMONS:
            units[each]["active"] = "inactive"
    after["modules"] = [*(each for each in after["modules"] if not each.startswith("nvidia")), "nvidia", "nvidia_uvm"]
    return Change(why, what, after)


def reloadable(survey: Survey) -> bool:
    """Is it known that nothing but our own daemons has the GPU open? Containers may hold it without a process that nvidia-smi shows."""
    running = survey["docker"]["running"]
    return survey["driver"]["processes"] == [] and (running is None or running == [])


def reboot(survey: Survey, target: Target) -> Change | None:
    """From effects: what the kernel runs is not what is installed."""
    module = known(survey["driver"]["module_version"])
    loaded = loaded_version(survey)
    why = ""
    if module is not None and nouveau_loaded(survey, target):
        why = f"{', '.join(nouveau_loaded(survey, target))} holds the GPU"
    elif module is not None and loaded is not None and module != loaded:
        why = f"driver {loaded} is loaded, {module} is installed"
    elif module is not None and loaded is None:
        why = f"driver {module} is installed and could not be loaded"
    elif module is not None and (kind := installed_kind(survey)) and module_kind(survey) not in (None, kind):
        why = f"the {module_kind(survey)} module is loaded, the {kind} one is installed"
    waiting = command_line.needs_reboot(survey, target)
    why = "; ".join(each for each in (why, waiting) if each)
    if not why:
        return None
    after = edited(survey)
    after["boot_id"] = PREDICTED
    if waiting:
        after["cgroup_controllers"] = ["cpu", "io", "memory", "pids"]
    if module is None:
        return Change(why, "reboot", after, reboots=True)
    after["modules"] = [each for each in after["modules"] if each not in target.blocked_modules] + ["nvidia", "nvidia_uvm"]
    _load(after)
    return Change(why, "reboot", after, reboots=True)


def _load(after: Survey) -> None:
    """What a survey says when the module that is installed is loaded."""
    after["driver"]["loaded_version"] = after["driver"]["module_version"]
    kind = installed_kind(after)
    after["driver"]["loaded_text"] = {"open": "Open Kernel Module", "proprietary": "Kernel Module", None: None}[kind]


def busy(survey: Survey) -> list[str]:
    """What a reboot would end, in words; empty: idle. What could not be read may be there."""
    found = [f"container {each['name']}" for each in known(survey["docker"]["running"]) or []]
    engine = unit(survey, "docker.service")
    if unreadable(survey["docker"]["running"]) is not None and engine and engine["active"] == "active":
        found.append("containers, maybe: Docker did not say")
    found += [f"GPU process {each}" for each in known(survey["driver"]["processes"]) or []]
    for name in ("kubelet.service", "slurmd.service"):
        service = unit(survey, name)
        if service and service["active"] == "active":
            found.append(name)
    return found


def service_limit_s(survey: Survey) -> int:
    """How long loading the driver, or starting one of its services, may take: more GPUs take longer (minutes were seen with 8 × H200)."""
    return SERVICE_BASE_S + SERVICE_PER_GPU_S * len(gpus(survey))


def driver_services(survey: Survey, driver: Driver) -> Change | Skip | None:
    """Units that must run: without persistence, the first CUDA call on an 8-GPU host takes up to a minute."""
    off = [each for each in driver.services if not (found := unit(survey, each)) or found["active"] != "active"]
    wrong = persistence_arguments(survey) if driver.is_ours else None
    if not off and not wrong:
        return None
    # where a reboot was not allowed
    names = ", ".join(off) or PERSISTENCE
    loaded, module = loaded_version(survey), known(survey["driver"]["module_version"])
    if loaded is None:
        return Skip(f"no driver is loaded, without which {names} cannot run")
    if module is not None and module != loaded:
        return Skip(f"driver {loaded} is loaded and {module} installed, with which {names} cannot run")
    after = edited(survey)
    units = known(after["units"]) or {}
    if wrong:
        units[PERSISTENCE]["exec_start"] = wrong
    for each in off:
        units[each] = {
            "load": "loaded",
            "active": "active",
            "enabled": "enabled",
            "fragment": "",
            "exec_start": wrong or "",
            "memlock": "",
        }
    after["units"] = units
    why = [f"{', '.join(off)} not running"] if off else []
    why += [f"{PERSISTENCE} is started with what keeps no GPU ready here"] if wrong else []
    what = [f"enable and start {', '.join(off)}"] if off else []
    return Change("; ".join(why), ", ".join([*what, *(["write a drop-in with other arguments"] if wrong else [])]), after)


def persistence_arguments(survey: Survey) -> str | None:
    """The command that nvidia-persistenced is to be started with in place of its unit's own; None where that one is right.

    Ubuntu's unit has --no-persistence-mode, which keeps the daemon and nothing ready. On Grace the GPU's memory is brought online by it,
    which only root may.
    """
    found = unit(survey, PERSISTENCE)
    command = re.search(r"argv\[\]=(.*?) ;", found["exec_start"]) if found else None
    if command is None:
        return None
    words = [each for each in command[1].split() if each != "--no-persistence-mode"]
    if survey["arch"] == "aarch64" and "--user" in words:
        at = words.index("--user")
        del words[at : at + 2]
    wanted = " ".join(words)
    return wanted if wanted != command[1] else None


def persistence_dropin(command: str) -> str:
    return f"# written by gpu-bringup\n[Service]\nExecStart=\nExecStart={command}\n"


def wrong_version(survey: Survey, driver: Driver) -> str | None:
    """Why the loaded driver is not what is wanted, or None when it is."""
    loaded = loaded_version(survey)
    if loaded is None:
        return "no driver is loaded"
    if not versions.matches(loaded, driver.wanted):
        return f"driver {loaded} is loaded, {driver.wanted} is wanted"
    return None
