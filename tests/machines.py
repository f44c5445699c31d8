"""Machines to plan for, named in a few words: `machine("rocky9 aarch64 8 x h100 + 4 x nvswitch")`, with a driver or a Docker on it.

All are fresh cloud VMs as `tests.surveys.fresh` has them, dressed as the distribution: os-release, kernel, package manager.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.surveys import Host, fresh


class System(NamedTuple):
    """Values of os-release, `uname -r` up to the architecture, and what the kernel's image is called by packages."""

    id: str
    version: str
    pretty: str
    kernel: str
    codename: str = ""
    rpm: bool = False


SYSTEMS = {
    "debian12": System("debian", "12", "Debian GNU/Linux 12 (bookworm)", "6.1.0-49-cloud-{deb}", "bookworm"),
    "debian13": System("debian", "13", "Debian GNU/Linux 13 (trixie)", "6.12.107+deb13-cloud-{deb}", "trixie"),
    "ubuntu22.04": System("ubuntu", "22.04", "Ubuntu 22.04.5 LTS", "5.15.0-1102-azure", "jammy"),
    "ubuntu24.04": System("ubuntu", "24.04", "Ubuntu 24.04.3 LTS", "6.8.0-1044-aws", "noble"),
    "ubuntu26.04": System("ubuntu", "26.04", "Ubuntu 26.04 LTS", "7.0.0-14-generic", "resolute"),
    "rhel8": System("rhel", "8.10", "Red Hat Enterprise Linux 8.10 (Ootpa)", "4.18.0-553.83.1.el8_10.{rpm}", rpm=True),
    "rhel9": System("rhel", "9.7", "Red Hat Enterprise Linux 9.7 (Plow)", "5.14.0-611.9.1.el9_7.{rpm}", rpm=True),
    "rhel10": System("rhel", "10.1", "Red Hat Enterprise Linux 10.1 (Coughlan)", "6.12.0-124.13.1.el10_1.{rpm}", rpm=True),
    "rocky8": System("rocky", "8.10", "Rocky Linux 8.10 (Green Obsidian)", "4.18.0-553.el8_10.{rpm}", rpm=True),
    "rocky9": System("rocky", "9.6", "Rocky Linux 9.6 (Blue Onyx)", "5.14.0-570.12.1.el9_6.{rpm}", rpm=True),
    "rocky10": System("rocky", "10.1", "Rocky Linux 10.1 (Red Quartz)", "6.12.0-124.8.1.el10_1.{rpm}", rpm=True),
    "alma8": System("almalinux", "8.10", "AlmaLinux 8.10 (Cerulean Leopard)", "4.18.0-553.el8_10.{rpm}", rpm=True),
    "alma9": System("almalinux", "9.7", "AlmaLinux 9.7 (Moss Jungle Cat)", "5.14.0-611.5.1.el9_7.{rpm}", rpm=True),
    "alma10": System("almalinux", "10.1", "AlmaLinux 10.1 (Heliotrope Lion)", "6.12.0-124.8.1.el10_1.{rpm}", rpm=True),
    "amzn2023": System("amzn", "2023", "Amazon Linux 2023.9.20251110", "6.1.158-178.288.amzn2023.{rpm}", rpm=True),
    "sles15": System("sles", "15.7", "SUSE Linux Enterprise Server 15 SP7", "6.4.0-150700.53.22-default", rpm=True),
}
# device, subsystem vendor, subsystem device, class
GPUS = {
    "k80": "102d 10de 106c 0302", "p100": "15f8 10de 118f 0302", "v100": "1db5 10de 1249 0302", "gtx1080ti": "1b06 1462 3602 0300",
    "t4": "1eb8 10de 12a2 0302", "a100": "20b0 10de 1463 0302", "a100-pcie": "20f1 10de 145f 0302", "a10": "2236 10de 1482 0302",
    "a10g": "2237 10de 152f 0302", "a16": "25b6 10de 14a9 0302", "a16-or-a2": "25b6 - - 0302", "l4": "27b8 10de 16ee 0302",
    "l40s": "26b9 10de 1851 0302", "h100": "2330 10de 16c1 0302", "h100-pcie": "2331 10de 1626 0302", "h200": "2335 10de 18be 0302",
    "gh200": "2342 10de 16eb 0302", "b200": "2901 10de 1999 0302", "b300": "3182 10de 20e6 0302", "gb200": "2941 10de 2046 0302",
    "rtx3090": "2204 1458 403b 0300", "rtx4090": "2684 1462 5102 0300", "rtx5090": "2b85 1043 89e3 0300",
    "rtxpro6000": "2bb5 10de 204e 0302", "rubin": "3000 10de 2100 0302", "b100": "2920 10de 1999 0302", "unknown": "2fff 10de 0001 0302",
    "nvswitch": "22a3 10de 1796 0680", "nvswitch-a100": "1af1 10de 1796 0680",
}  # fmt: skip
MACHINES = {"x86_64": {"deb": "amd64", "rpm": "x86_64"}, "aarch64": {"deb": "arm64", "rpm": "aarch64"}}


def machine(words: str) -> Host:
    """`SYSTEM [aarch64] [N x GPU + …]`; without a GPU where none is named."""
    name, _, rest = words.partition(" ")
    system, arch = SYSTEMS[name], "aarch64" if rest.startswith("aarch64") else "x86_64"
    devices = _devices(rest.removeprefix("aarch64").strip())
    kernel = system.kernel.format(**MACHINES[arch])
    codename = f"VERSION_CODENAME={system.codename}\n" if system.codename else ""
    os_release = (
        f'NAME="{system.pretty}"\nVERSION_ID="{system.version}"\nID="{system.id}"\nPRETTY_NAME="{system.pretty}"\n{codename}'
    )
    host = fresh("debian12", [], nouveau=False)
    for section, text in {
        "os_release": os_release, "arch": arch, "kernel": kernel, "pci": "\n".join(devices), "modules": "nouveau" if devices else "",
        "kernels": f"{kernel} headers=no nvidia=no image=yes", "command_line": f"BOOT_IMAGE=/boot/vmlinuz-{kernel} ro console=ttyS0",
        "kernel_built": f"Linux version {kernel} (build@host) (gcc-13 (GCC) 13.3.0)",
    }.items():  # fmt: skip
        host = host.set(section, text)
    return as_rpm(host) if system.rpm else host


def as_rpm(host: Host) -> Host:
    """facts/survey.sh has no sections of dpkg and apt where there is no dpkg-query."""
    sections = {name: value for name, value in host.sections.items() if name not in ("holds", "dpkg_audit", "headers_offered")}
    kernel = host.sections["kernel"][1][0]
    host = Host(sections).set("repositories", "").set("packages", f"kernel-core 0:{kernel} install installed")
    if kernel.startswith("4.18"):  # RHEL 8 and its relatives boot with cgroup v1
        host = host.set("cgroup_controllers", "", "absent")
    return host if kernel.endswith("default") else host.set("selinux", "Enforcing")


def _devices(words: str) -> list[str]:
    lines: list[str] = []
    for each in filter(None, (part.strip() for part in words.split("+"))):
        count, name = each.split(" x ") if " x " in each else ("1", each)
        device, vendor, subsystem, class_ = GPUS[name].split()
        sub = "- -" if vendor == "-" else f"0x{vendor} 0x{subsystem}"
        bound = "nouveau" if class_.startswith("03") else "-"
        for _ in range(int(count)):
            lines.append(f"0000:{len(lines) + 4:02x}:00.0 0x10de 0x{device} {sub} 0x{class_}00 0 {bound} 6 0")
    return lines


DRIVERS = {  # by whom: packages with their versions; {v} the driver's version, {b} its branch, {k} `-open` or nothing
    "nvidia-debian": "nvidia-driver-cuda {v}-1, nvidia-kernel{k}-dkms {v}-1, nvidia-persistenced {v}-1, libcuda1 {v}-1",
    "nvidia-ubuntu": "libnvidia-compute-{b} {v}-1ubuntu1, nvidia-utils-{b} {v}-1ubuntu1, nvidia-dkms-{b}{k} {v}-1ubuntu1, "
    "nvidia-compute-utils-{b} {v}-1ubuntu1",
    "nvidia-ubuntu-590": "libnvidia-compute {v}-1ubuntu1, nvidia-dkms{k} {v}-1ubuntu1, nvidia-persistenced {v}-1ubuntu1",
    "nvidia-rpm": "nvidia-driver-cuda 3:{v}-1.el9, kmod-nvidia{k}-dkms 3:{v}-1.el9, nvidia-persistenced 3:{v}-1.el9",
    "debian": "nvidia-kernel-dkms {v}-1~deb12u1, libcuda1 {v}-1~deb12u1, nvidia-smi {v}-1~deb12u1, nvidia-modprobe {v}-1",
    "ubuntu-server": "linux-modules-nvidia-{b}-server{k}-aws 6.8.0-1044.46, nvidia-headless-no-dkms-{b}-server{k} {v}-0ubuntu0.24.04.1, "
    "nvidia-utils-{b}-server {v}-0ubuntu0.24.04.1, nvidia-compute-utils-{b}-server {v}-0ubuntu0.24.04.1",
    "ubuntu-desktop": "nvidia-driver-{b}{k} {v}-0ubuntu0.24.04.1, nvidia-dkms-{b}{k} {v}-0ubuntu0.24.04.1, "
    "nvidia-utils-{b} {v}-0ubuntu0.24.04.1",
    "rpmfusion": "akmod-nvidia 3:{v}-1.fc43, xorg-x11-drv-nvidia-cuda 3:{v}-1.fc43",
    "image": "",
    "runfile": "",
}  # fmt: skip


def with_driver(host: Host, by: str, version: str, kind: str = "open", loaded: bool = True) -> Host:
    """The host with a driver on it, loaded or waiting for its reboot."""
    open_suffix = "-open" if kind == "open" else ("-latest" if by == "nvidia-rpm" else "")
    texts = DRIVERS[by].format(v=version, b=version.split(".")[0], k=open_suffix)
    packages = [f"{each.strip()} install installed" for each in texts.split(",") if each.strip()]
    kernel = host.sections["kernel"][1][0]
    now = "\n".join([*host.sections["packages"][1], *packages])
    host = host.set("packages", now).set("kernels", f"{kernel} headers=yes nvidia=yes image=yes")
    host = host.set("module_version", version).set("module_license", "Dual MIT/GPL" if kind == "open" else "NVIDIA")
    host = host.set("module_files", f"{version} /lib/modules/{kernel}/updates/dkms/nvidia.ko")
    if by == "runfile":
        host = host.set("runfile", "/usr/bin/nvidia-uninstall")
    if not loaded:
        return host
    words = "Open Kernel Module for x86_64" if kind == "open" else "x86_64 Kernel Module"
    pci = "\n".join(re.sub(r"(0x03\w+ \S+) \S+", r"\1 nvidia", line) for line in host.sections["pci"][1])
    nodes = [f"/dev/nvidia{at}" for at in range(sum(" 0x03" in line for line in host.sections["pci"][1]))]
    for section, text in {
        "modules": "nvidia\nnvidia_uvm\nnvidia_modeset", "driver_loaded": f"NVRM version: NVIDIA UNIX {words}  {version}  Release Build",
        "driver_loaded_version": version, "pci": pci, "device_nodes": "\n".join([*nodes, "/dev/nvidiactl", "/dev/nvidia-uvm"]),
        "driver_libraries": f"/usr/lib/x86_64-linux-gnu/libcuda.so.{version}", "smi": "GPU 0: NVIDIA (UUID: GPU-0)", "gpu_processes": "",
    }.items():  # fmt: skip
        host = host.set(section, text)
    return host


def with_docker(
    host: Host, version: str, package: str = "docker-ce", info: Mapping[str, Any] | None = None, running: str = ""
) -> Host:
    """The host with a Docker that answers."""
    packages = "\n".join([*host.sections["packages"][1], f"{package} 5:{version}-1 install installed"])
    unit = "Id=docker.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\nFragmentPath=/lib/systemd/system/docker.service"
    said = {
        "ServerVersion": version,
        "Runtimes": {"runc": {}},
        "DefaultRuntime": "runc",
        "LiveRestoreEnabled": False,
        **(info or {}),
    }
    for section, text in {
        "engine": f"Docker version {version}, build 1234567", "docker_path": "/usr/bin/docker", "packages": packages, "units": unit,
        "docker_info": json.dumps(said), "docker_running": running, "docker_images": "",
    }.items():  # fmt: skip
        host = host.set(section, text)
    return host
