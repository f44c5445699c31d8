"""What `facts/survey.sh` printed -> Survey. Raises SurveyError on anything that is not a whole survey; guesses nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from bringup.dockerd import command_line, environment, unit_environment
from bringup.survey import (
    SCHEMA,
    Bootloader,
    CdiSpec,
    Container,
    DeviceNode,
    Disk,
    Docker,
    Driver,
    Kernel,
    Limits,
    ModuleFile,
    Os,
    PciDevice,
    Read,
    Survey,
    Unit,
    Unreadable,
    known,
)
from bringup.survey.packages import parse_packages
from bringup.survey.sections import Section, Sections, SurveyError, split_sections

TICKS_PER_SECOND = 100  # USER_HZ of every Linux port that has NVIDIA GPUs: units of /proc/PID/stat
CAP_SYS_RESOURCE = 24  # linux/capability.h


def parse_survey(output: Iterable[str], now_s: float) -> Survey:
    """`now_s`: the control machine's clock, epoch seconds. Raises SurveyError."""
    got = split_sections(output)
    try:
        return _parse(got, now_s)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, SurveyError):
            raise
        raise SurveyError(f"the survey holds a value that cannot be right: {type(error).__name__}: {error}") from error


def _parse(got: Sections, now_s: float) -> Survey:
    clock_s = float(got.lines("clock")[0].rstrip("N").rstrip(".%"))  # busybox has no %N
    memory = re.search(r"^MemTotal:\s+(\d+) kB", got["meminfo"].text, re.M)
    return Survey(
        schema=SCHEMA,
        root=got.lines("root")[0] == "0",
        clock_s=clock_s,
        clock_offset_s=round(clock_s - now_s, 1),
        arch=got.lines("arch")[0],
        kernel=got.lines("kernel")[0],
        kernel_built=got.text("kernel_built"),
        boot_id=got.text("boot_id"),
        os=got.read("os_release", _os),
        command_line=got.text("command_line"),
        memory_mib=int(memory.group(1)) // 1024 if memory else None,
        virtualization=_virtualization(got),
        container=got.read("container_env", lambda section: section.text.strip() or None),
        dmi={path.rsplit("/", 1)[1]: text.strip() if isinstance(text, str) else text for path, text in got.files("dmi").items()},
        pci=[_pci(line) for line in got.lines("pci")],
        modules=got.lines("modules"),
        kernels=[_kernel(line) for line in got.lines("kernels")],
        driver=_driver(got),
        secure_boot=_secure_boot(got),
        selinux=got.read("selinux", lambda section: section.text.strip().lower()),
        dkms=got.read("dkms", lambda section: [line for line in section.lines if line.strip()]),
        packages=parse_packages(got),
        cloud_init=_cloud_init(got),
        reboot_required=bool(got.files("reboot_required")),
        docker=_docker(got, clock_s),
        toolkit_version=got.read("toolkit", _toolkit_version),
        toolkit_config=got.text("toolkit_config"),
        ldconfig=got.lines("ldconfig"),
        rootless=got.lines("rootless"),
        cdi=_cdi(got.lines("cdi")),
        bootloader=Bootloader(tools=got.lines("bootloader"), arguments=got.read("boot_arguments", _boot_arguments)),
        cgroup_controllers=got.read("cgroup_controllers", lambda section: section.text.split()),
        limits=_limits(got),
        disks=_disks(got),
        units=got.read("units", _units),
        our_files=got.files("our_files"),
        provenance=got.text("provenance"),
        proof=got.text("proof"),
        lock="".join(str(text) for text in got.files("lock").values()).strip() or None,
        proxies=got.lines("proxy"),
    )


def _os(section: Section) -> Os:
    values: dict[str, str] = dict(re.findall(r"^([A-Z_]+)=[\"']?(.*?)[\"']?$", section.text, re.M))
    return Os(
        id=values.get("ID", "").lower(),
        version_id=values.get("VERSION_ID", ""),
        pretty_name=values.get("PRETTY_NAME") or values.get("ID", ""),
        codename=values.get("VERSION_CODENAME"),
    )


def _virtualization(got: Sections) -> Read[str]:
    section = got["virtualization"]
    if section.status == "failed" and section.lines[:2] == ["exit 1", "none"]:  # systemd-detect-virt on bare metal
        return "none"
    return got.read("virtualization", lambda section: section.text.strip())


def _hex(text: str) -> str | None:
    return None if text == "-" else text.removeprefix("0x")


def _pci(line: str) -> PciDevice:
    address, vendor, device, sub_vendor, sub_device, class_, numa, driver, bars, unassigned = line.split()
    return PciDevice(
        address=address,
        vendor=vendor.removeprefix("0x"),
        device=device.removeprefix("0x"),
        subsystem_vendor=_hex(sub_vendor),
        subsystem_device=_hex(sub_device),
        pci_class=class_.removeprefix("0x"),
        numa_node=None if numa == "-" else int(numa),
        driver=None if driver == "-" else driver,
        bars=int(bars),
        bars_unassigned=int(unassigned),
    )


def _kernel(line: str) -> Kernel:
    release, *flags = line.split()
    yes = {flag.split("=")[0]: flag.endswith("=yes") for flag in flags}
    return Kernel(release=release, headers=yes["headers"], nvidia_module=yes["nvidia"], image=yes["image"])


def _driver(got: Sections) -> Driver:
    text = got.text("driver_loaded")
    version = got.read("driver_loaded_version", lambda section: section.text.strip())
    if version is None and isinstance(text, str):  # /sys/module/nvidia/version is missing on some; both say the same
        found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text)
        version = found.group(1) if found else Unreadable(unreadable=f"no version in {text[:80]!r}")
    blocked = set()
    for line in got.lines("modprobe"):
        found = re.match(r"\S+: \s*(?:blacklist\s+(\S+)|install\s+(\S+)\s+/bin/(?:false|true))", line)
        if found:
            blocked.add(found.group(1) or found.group(2))
    libraries = {
        found.group(1) for line in got.lines("driver_libraries") if (found := re.search(r"\.so\.(\d{3}\.[\d.]+)$", line))
    }
    return Driver(
        loaded_version=version,
        loaded_text=text,
        module_version=_tool(got, "module_version"),
        module_license=_tool(got, "module_license"),
        module_files=got.read("module_files", _module_files),
        libraries=sorted(libraries),
        device_nodes=got.lines("device_nodes"),
        nodes=[_node(line) for line in got.lines("device_numbers")],
        smi=got.text("smi"),
        processes=got.read("gpu_processes", lambda section: [line for line in section.lines if line.strip()]),
        blocked_modules=sorted(blocked),
        runfile=got["runfile"].status == "ok",
        initramfs_stale=_initramfs_stale(got.lines("initramfs")),
    )


def _node(line: str) -> DeviceNode:
    path, number, linked, mode, group = line.rsplit(" ", 4)
    return DeviceNode(path=path, number=number, linked=linked == "linked", mode=mode, group=group)


def _initramfs_stale(lines: list[str]) -> bool | None:
    written = {path: int(at) for path, at in (line.rsplit(" ", 1) for line in lines)}
    images = [at for path, at in written.items() if path.startswith("/boot/")]
    blocked = [at for path, at in written.items() if path.startswith("/etc/")]
    return images[0] < blocked[0] if images and blocked else False if images else None


def _tool(got: Sections, name: str) -> Read[str]:
    """What modinfo said. That there is no such module is an exit 1 of kmod's, and of busybox's an exit 0 with the same words."""
    section = got[name]
    if section.status == "failed" and section.lines[:1] == ["exit 1"] and "not found" in section.text:
        return None
    return got.read(name, _modinfo)


def _module_files(section: Section) -> list[ModuleFile]:
    """`VERSION PATH`, or a path alone after a blank."""
    found = (line.partition(" ") for line in section.lines)
    return [ModuleFile(path=path, version=version) for version, _, path in found if path]


def _modinfo(section: Section) -> str | Unreadable | None:
    said = section.text.strip()
    if said.startswith("modinfo:"):
        return None if "not found" in said else Unreadable(unreadable=said)
    return said or None


def _secure_boot(got: Sections) -> Read[bool]:
    efi = got["efi_secure_boot"].text.strip()
    if efi == "no EFI":
        return False
    if efi:  # the variable: four bytes of attributes, then the value
        return efi.split()[-1] == "1"
    return got.read("secure_boot", lambda section: "SecureBoot enabled" in section.text)


def _cloud_init(got: Sections) -> Read[str]:
    section = got["cloud_init"]
    found = re.search(r"^status: *(.+)$", section.text, re.M)  # exits 2 on warnings that are no failure
    return found.group(1) if found else got.text("cloud_init")


def _docker(got: Sections, clock_s: float) -> Docker:
    def info(section: Section) -> dict[str, Any] | Unreadable:
        json_line = next((line for line in section.lines if line.startswith("{")), "")
        try:
            value = json.loads(json_line)
        except ValueError:
            return Unreadable(unreadable=section.text[:200] or "docker info printed nothing")
        if value.get("ServerErrors"):
            return Unreadable(unreadable="; ".join(value["ServerErrors"]))
        return dict(value)

    started = None
    stat = got["docker_stat"]
    if stat.status == "ok" and stat.lines and got["uptime"].status == "ok":
        ticks = int(stat.lines[0].rsplit(")", 1)[1].split()[19])  # field 22, counted after the name in parentheses
        uptime = float(got.lines("uptime")[0].split()[0])
        started = round(clock_s - uptime + ticks / TICKS_PER_SECOND, 2)
    written = got["daemon_json_written"]
    version = got.read("engine", lambda section: section.text.strip())
    path = got.lines("docker_path")[0] if got.lines("docker_path") else ""
    return Docker(
        path=path or None,
        version=found.group(1) if isinstance(version, str) and (found := re.search(r"version ([\d.]+)", version)) else version,
        snap=got["docker_snap"].status == "ok",
        podman=isinstance(version, str) and "podman" in version,
        info=got.read("docker_info", info),
        running=got.read("docker_running", lambda section: [_container(line) for line in section.lines if line.strip()]),
        auto_remove=got.read(
            "docker_auto_remove", lambda section: [line.strip().lstrip("/") for line in section.lines if line.strip()]
        ),
        images=got.read("docker_images", lambda section: [each for each in section.text.split() if "<none>" not in each]),
        pulled=got["pulled_by_us"].text.split() if got["pulled_by_us"].status == "ok" else [],
        daemon_json=got.text("daemon_json"),
        daemon_json_written_s=float(written.lines[0]) if written.status == "ok" else None,
        daemon_json_taken_up_s=float(got.lines("daemon_json_taken_up")[0])
        if got["daemon_json_taken_up"].status == "ok"
        else None,
        daemon_json_pending=got.text("daemon_json_pending"),
        command=_docker_command(got),
        group=_group(got["docker_group"]),
        started_s=started,
        memlock=got.read("docker_limits", lambda section: _limit(section.lines, "Max locked memory", hard=False)),
        containerd_memlock=got.read("containerd_limits", lambda section: _limit(section.lines, "Max locked memory", hard=False)),
        dropins=got.files("docker_dropins"),
    )


def _docker_command(got: Sections) -> str:
    service = (known(got.read("units", _units)) or {}).get("docker.service")
    given: dict[str, str] = {}
    for section, read in (("docker_dropins", unit_environment), ("docker_environment", environment)):
        for text in got.files(section).values():
            given |= read(text) if isinstance(text, str) else {}
    return command_line(service["exec_start"], given) if service else ""


def _group(section: Section) -> Read[list[str]]:
    if section.status == "failed" and section.lines == ["exit 2"]:  # getent: no such name
        return None
    if section.status == "absent":
        return None
    if section.status != "ok":
        return Unreadable(unreadable=" ".join(section.text.split()) or section.status)
    return [each for each in section.text.strip().rpartition(":")[2].split(",") if each]


def _container(line: str) -> Container:
    id_, name, image = [*line.split(" ", 2), "", ""][:3]
    return Container(id=id_, name=name, image=image)


def _toolkit_version(section: Section) -> str | None:
    found = re.search(r"version ([\d.]+)", section.text)
    return found.group(1) if found else None


def _boot_arguments(section: Section) -> str | None:
    found = re.search(r'^args="(.*)"$', section.text, re.M)
    return found.group(1) if found else None


def _cdi(lines: list[str]) -> list[CdiSpec]:
    specs: dict[str, CdiSpec] = {}
    for line in lines:
        path, what, value, number = (*line.split(" ", 3), "", "")[:4]  # specs of other vendors may hold anything
        if path not in specs:
            specs[path] = CdiSpec(
                path=path,
                kind=None,
                version=None,
                mode="",
                library_versions=[],
                device_nodes=[],
                devices=[],
                numbers={},
                missing=[],
            )
        spec = specs[path]
        if what == "kind":
            spec["kind"] = value
        elif what == "version":
            spec["version"] = value
        elif what == "mode":
            spec["mode"] = value
        elif what == "library" and "." in value.removeprefix("libcuda.so."):  # libcuda.so.1 is a link, no version
            spec["library_versions"].append(value.removeprefix("libcuda.so."))
        elif what == "node" and value not in spec["device_nodes"]:
            spec["device_nodes"].append(value)
        elif what == "device":
            spec["devices"].append(value)
        elif what == "missing":
            spec["missing"].append(value)
        if what == "node" and ":" in number:
            spec["numbers"][value] = number
    return list(specs.values())


def _limit(lines: Iterable[str], name: str, *, hard: bool) -> str | None:
    for line in lines:
        if line.startswith(name):
            return line[len(name) :].split()[1 if hard else 0]
    return None


def _limits(got: Sections) -> Limits:
    bounding = re.search(r"CapBnd:\s*([0-9a-f]+)", got["pid1_capabilities"].text)
    return Limits(
        pid1_memlock_hard=_limit(got.lines("pid1_limits"), "Max locked memory", hard=True),
        pid1_open_files_hard=_limit(got.lines("pid1_limits"), "Max open files", hard=True),
        may_raise=bool(int(bounding.group(1), 16) >> CAP_SYS_RESOURCE & 1) if bounding else None,
        limits_d=got.files("limits"),
        systemd_memlock=got.read("system_memlock", lambda section: section.text.strip().partition("=")[2]),
        systemd_dropins=got.files("systemd_dropins"),
    )


def _disks(got: Sections) -> dict[str, Disk]:
    """By mount point; several of the folders asked for may lie on one."""
    found: dict[str, Disk] = {}
    for name, key in (("disks", "free_kib"), ("inodes", "free_inodes")):
        for line in got[name].lines if got[name].status == "ok" else []:
            fields = line.split()
            if len(fields) < 6 or not fields[-1].startswith("/"):  # the header, or what df says of a folder without a mount point
                continue
            disk = found.setdefault(fields[-1], Disk(free_kib=None, free_inodes=None))
            # btrfs and others make inodes as they need them, and count none
            counted = fields[-3].isdigit() and not (key == "free_inodes" and fields[-5] == "0")
            disk[key] = int(fields[-3]) if counted else None  # type: ignore[literal-required]
    return found


def _units(section: Section) -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for block in section.text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        if values.get("Id"):
            found[values["Id"]] = Unit(
                load=values.get("LoadState", ""),
                active=values.get("ActiveState", ""),
                enabled=values.get("UnitFileState", ""),
                fragment=values.get("FragmentPath", ""),
                exec_start=values.get("ExecStart", ""),
                memlock=values.get("LimitMEMLOCK", ""),
            )
    return found
