"""Relations of the driver: what is loaded, installed, held, and made for the GPUs."""

from __future__ import annotations

import re

from bringup import catalog, versions
from bringup.catalog.gpus import Gpu
from bringup.doctor.facts import DRIVER, Facts
from bringup.doctor.relations.registry import relation


def same(one: str, other: str) -> bool:
    """Are these the same driver? NVML says 550.107 of 550.107.02."""
    a, b = versions.key(one), versions.key(other)
    length = min(len(a), len(b))
    return a[:length] == b[:length]


def library_versions(facts: Facts) -> dict[str, str]:
    """What user space says of its version: {where: version}."""
    found = {
        name: version
        for name, version in facts.driver_packages.items()
        if re.search(r"compute|nvidia-ml|libcuda1|nvidia-utils|driver-cuda", name)
    }
    nvml = facts.find(r"NVML library version:\s*(\d{3}\.\d+(?:\.\d+)?)")
    if nvml:
        found["NVML library version"] = nvml
    for version in re.findall(r"lib(?:cuda|nvidia-ml)\.so\." + DRIVER, _library_text(facts)):
        found[f"library file of {version}"] = version
    return found


def _library_text(facts: Facts) -> str:
    text = facts.command(
        r"^(?:ls|find|ldconfig|readlink)\b(?!.*(?:compat|overlay|docker)).*(?:lib(?:cuda|nvidia-ml)|ldconfig|/lib)"
    )
    return "" if text is None else "\n".join(line for line in text.split("\n") if "compat" not in line)


@relation
def loaded_differs_from_installed(facts: Facts) -> list[str]:
    """The module in memory is of another version than the libraries."""
    if facts.loaded is None:
        return []
    other = {where: version for where, version in library_versions(facts).items() if not same(version, facts.loaded)}
    # two branches side by side are another cause: some package must be of another version and none of this one
    if not other or any(same(version, facts.loaded) for version in library_versions(facts).values()):
        return []
    where, version = next(iter(other.items()))
    return [f"loaded is {facts.loaded}, {where} is {version}"]


@relation
def module_on_disk_differs_from_libraries(facts: Facts) -> list[str]:
    """The module that the next boot would load is not of the libraries' version."""
    packages = {**library_versions(facts), **facts.driver_packages}
    said = facts.find(r"nvidia-utils package version:\s*" + DRIVER)
    if said:
        packages["nvidia-utils"] = said
    if facts.on_disk is None or not packages or any(same(each, facts.on_disk) for each in packages.values()):
        return []
    where, version = next(iter(packages.items()))
    return [f"modinfo says {facts.on_disk} of the module on disk, {where} is {version}"]


@relation
def two_modules_on_disk(facts: Facts) -> list[str]:
    text = facts.command(r"^(?:find|ls|locate)\b.*lib/modules") or ""
    found = re.findall(r"^\s*(/(?:usr/)?lib/modules/([^/\s]+)/\S*/nvidia\.ko(?:\.\w+)?)\s*$", text, re.M)
    for kernel in {each[1] for each in found}:
        paths = [path for path, of in found if of == kernel]
        if len(paths) > 1:
            return [f"more than one module for {kernel}: {', '.join(paths)}"]
    return []


@relation
def driver_packages_of_several_versions(facts: Facts) -> list[str]:
    by_version: dict[str, list[str]] = {}
    for name, version in facts.driver_packages.items():
        if not re.search(r"persistenced|modprobe|alternative|xnvctrl", name):
            by_version.setdefault(version, []).append(name)
    if len(by_version) < 2:
        return []
    return ["; ".join(f"{version}: {', '.join(names)}" for version, names in sorted(by_version.items()))]


@relation
def fabric_manager_differs_from_driver(facts: Facts) -> list[str]:
    said = facts.find(r"fabric.?manager.{0,40}version (?:is )?:?\s*" + DRIVER)
    found = dict(facts.fabric_packages) or ({"nv-fabricmanager": said} if said else {})
    drivers = facts.driver or next(iter(facts.driver_packages.values()), None)
    if not found or drivers is None:
        return []
    return [f"{name} is {version}, the driver is {drivers}" for name, version in found.items() if not same(version, drivers)]


@relation
def driver_packages_are_held(facts: Facts) -> list[str]:
    held = [each for each in facts.holds if re.search(r"nvidia|cuda|^linux-(?:image|headers|modules)", each)]
    return [f"held: {', '.join(held)}"] if held else []


@relation
def hold_of_what_is_not_installed(facts: Facts) -> list[str]:
    """A glob held names that are no installed packages."""
    if not facts.holds or not facts.packages:
        return []
    names = {each.split(":")[0] for each in facts.packages}
    foreign = [each for each in facts.holds if each.split(":")[0] not in names and re.search(r"nvidia|cuda", each)]
    return [f"held, and not installed: {', '.join(foreign)}"] if foreign else []


def gpus_of(facts: Facts) -> list[Gpu]:
    known = catalog.load()
    return [found[0] for each in facts.gpu_ids if (found := known.gpu_candidates(each))]


def _open_module(facts: Facts) -> str | None:
    """What says that the open module is, or would be, used."""
    text = facts.file("/proc/driver/nvidia/version") or facts.everything
    if re.search(r"NVRM version:.*Open Kernel Module|license:\s*Dual MIT/GPL", text):
        return "the open kernel module is loaded"
    text = facts.command(r"^modinfo\b.*nvidia") or ""
    if "Dual MIT" in text:
        return "the module on disk is the open one"
    name = next((each for each in facts.packages if re.search(r"nvidia.*-open\b|kernel-open|open-dkms", each)), None)
    name = name or facts.find(r"\b(nvidia-(?:driver|dkms|kernel-source)-\d{3}(?:-server)?-open)\b")
    return f"{name} is installed or asked for" if name else None


def _proprietary_module(facts: Facts) -> str | None:
    if facts.loaded and re.search(r"NVRM version: NVIDIA UNIX x86_64 Kernel Module", facts.everything):
        return f"the proprietary module {facts.loaded} is loaded"
    text = facts.command(r"^modinfo\b.*nvidia") or ""
    if re.search(r"^(?:license:\s*)?NVIDIA\s*$", text, re.M):
        return "the module on disk is the proprietary one"
    wanted = r"^nvidia-(?:dkms|driver|kernel-source)-\d{3}(?:-server)?$|^nvidia-kernel-dkms$|^kmod-nvidia-latest-dkms$"
    name = next((each for each in facts.packages if re.search(wanted, each)), None)
    return f"{name} is installed" if name else None


@relation
def open_module_for_a_gpu_without_gsp(facts: Facts) -> list[str]:
    old = [each.name for each in gpus_of(facts) if each.kernel_module == "proprietary-only"]
    how = _open_module(facts) if old else None
    return [f"{old[0]} has no GSP; {how}"] if how else []


@relation
def proprietary_module_for_an_open_only_gpu(facts: Facts) -> list[str]:
    new = [each.name for each in gpus_of(facts) if each.kernel_module == "open-only"]
    how = _proprietary_module(facts) if new else None
    return [f"{new[0]} runs with the open module alone; {how}"] if how else []


@relation
def gpu_dropped_by_the_branch(facts: Facts) -> list[str]:
    version = facts.driver or facts.on_disk or next(iter(facts.driver_packages.values()), None)
    branch = versions.branch_or_none(version)
    if branch is None:
        named = facts.find(r"(?:requested driver|nvidia-driver|cuda-drivers)[:-]\s*(\d{3})\b")
        branch = int(named) if named else None
    if branch is None:
        return []
    lost = [each for each in gpus_of(facts) if each.max_branch is not None and branch > each.max_branch]
    return [f"{lost[0].name} has no driver after branch {lost[0].max_branch}, the host has {branch}"] if lost else []


@relation
def driver_older_than_the_gpu(facts: Facts) -> list[str]:
    version = facts.driver or facts.on_disk or next(iter(facts.driver_packages.values()), None)
    if version is None or not versions.is_driver(version):
        return []
    for gpu in gpus_of(facts):
        least = gpu.min_driver_in(versions.branch_of(version)) or gpu.min_driver
        if least and not versions.at_least(version, least):
            return [f"{gpu.name} needs driver {least} or newer, the host has {version}"]
    return []


@relation
def gsp_firmware_of_another_version(facts: Facts) -> list[str]:
    text = facts.command(r"^ls\b.*firmware/nvidia")
    if text is None or facts.loaded is None:
        return []
    found = re.findall(DRIVER, text)
    if facts.loaded in found or ("gsp_" in text and not found):
        return []
    return [f"loaded is {facts.loaded}, /lib/firmware/nvidia holds {', '.join(found) or 'nothing'}"]


@relation
def firmware_is_there(facts: Facts) -> list[str]:
    text = facts.command(r"^ls\b.*firmware/nvidia") or ""
    return [f"firmware of {facts.loaded} is there"] if facts.loaded and facts.loaded in text else []


@relation
def libraries_missing(facts: Facts) -> list[str]:
    """A module is loaded, and the driver's libraries are not there."""
    text = facts.command(r"^ldconfig -p")
    if text is not None and facts.driver and not re.search(r"libnvidia-ml\.so|libcuda\.so", text):
        return [f"driver {facts.driver} is loaded, ldconfig knows no libnvidia-ml.so.1"]
    return []


@relation
def installed_from_a_run_file(facts: Facts) -> list[str]:
    text = facts.command(r"(?:command -v|which|ls)\b.*nvidia-uninstall") or ""
    if re.search(r"^\s*\S*/nvidia-uninstall\s*$", text, re.M):
        return [f"nvidia-uninstall is there: {text.strip().splitlines()[0]}"]
    owner = facts.command(r"(?:dpkg -S|dpkg-query -S|rpm -qf).*(?:nvidia-smi|libcuda|libnvidia-ml)") or ""
    found = re.search(r"^.*(?:no path found|is not owned by|kein Pfad gefunden).*$", owner, re.M)
    return [f"no package owns it: {found[0].strip()}"] if found else []


@relation
def unloaded_on_disk_only(facts: Facts) -> list[str]:
    """The driver is not loaded, as lsmod says."""
    if facts.modules is None or "nvidia" in facts.modules or facts.loaded:
        text = facts.command(r"lsmod \| grep.*nvidia|lsmod \| grep -c")
        return ["lsmod shows no nvidia"] if text is not None and text.strip() in ("", "0") and not facts.loaded else []
    return ["lsmod shows no nvidia"]


@relation
def uvm_not_loaded(facts: Facts) -> list[str]:
    if facts.modules is not None and "nvidia" in facts.modules and "nvidia_uvm" not in facts.modules:
        return ["lsmod shows nvidia, and no nvidia_uvm"]
    nodes = facts.command(r"^ls\b.*/dev/nvidia\*|^ls\b(?:\s+-\S+)*\s+/dev/?(?:\s*\|.*)?$|^find /dev") or ""
    if re.search(r"/dev/nvidia0|\bnvidia0\b", nodes) and not re.search(
        r"nvidia-uvm(?!.*(?:no such|cannot access|nicht))", nodes, re.I
    ):
        return ["/dev has nvidia0, and no nvidia-uvm"]
    return []


@relation
def device_nodes_restricted(facts: Facts) -> list[str]:
    text = "\n".join(filter(None, [facts.command(r"^(?:stat|ls)\b.*/dev/nvidia"), facts.command("^ls -l.* /dev")]))
    for line in text.split("\n"):
        mode = re.match(r"^\s*(?:crw-rw----|crw-------|0?6[0-6]0)\b.*nvidia(?:ctl|\d)", line)
        if mode:
            return [line.strip()]
    mode = re.search(
        r"^(?!\s*#).*NVreg_DeviceFileMode\s*=\s*0?[0-7]?[0-7][0-7]0\b.*$|^DeviceFileMode:\s*(?!438\b)\d+.*$",
        facts.everything,
        re.M,
    )
    return [mode[0].strip()] if mode else []
