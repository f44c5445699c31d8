"""Whole surveys to start a test from, as facts/survey.sh prints them: `fresh()`, `converged()`; edit sections, then parse.

The text of a fresh host is as a Debian cloud VM prints it; the values of a converged one are those of a lab host after a run.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, cast

from bringup import catalog
from bringup.limits import UNITS
from bringup.plan import Plan, make_plan
from bringup.settings import Settings, Verify, read_settings
from bringup.steps import cdi as cdi_step
from bringup.steps import device_links, proof, provenance, uncommented
from bringup.steps.sources import SETTINGS_FILE
from bringup.survey import Survey
from bringup.survey.parse import parse_survey
from bringup.survey.sections import BEGIN

ONESHOTS = (device_links.SERVICE, cdi_step.SERVICE)  # units that run and end
TODAY = date(2026, 11, 30)
NOW_S = 1_796_078_453.5
KERNELS = {"debian12": "6.1.0-49-cloud-amd64", "debian13": "6.12.107+deb13-cloud-amd64"}
RELEASES = {"debian12": ("12", "bookworm"), "debian13": ("13", "trixie")}
DOCKERS = {"debian12": "20.10.24", "debian13": "26.1.5"}
DRIVER, TOOLKIT = "580.159.04", "1.20.0"
MIRROR = "https://mirror.example"
IMAGE = "registry.example:5000/pytorch@sha256:" + "5a" * 32
KEYS = Path(__file__).parent / "keys"
FINGERPRINT = "6BC4239288680985C857DE632F4868ABD244DE19"  # of keys/ed25519.gpg
H200, NVSWITCH, T4, V100, GT1030 = (
    "0x2335 0x10de 0x18be 0x030200",
    "0x22a3 0x10de 0x1796 0x068000",
    "0x1eb8 0x10de 0x12a2 0x030200",
    "0x1db4 0x10de 0x1214 0x030200",
    "0x1d01 0x10de 0x1d01 0x030000",
)

# what the hosts of converged() were made with: their own mirror, so that our test key signs it
SETTINGS: Mapping[str, object] = {
    "gpu_docker_source": "distro",
    "gpu_repositories": {
        name: {"url": f"{MIRROR}/{name}/", "key_url": f"{MIRROR}/{name}.pub", "fingerprint": FINGERPRINT}
        for name in ("nvidia-driver", "nvidia-toolkit")
    },
    "gpu_images": [IMAGE],
}
SOURCES = """# written by gpu-bringup
Types: deb
URIs: https://mirror.example/{name}/
Suites: /
Signed-By: {keyring}
"""


class Host:
    """The sections of a survey by name: (status, lines)."""

    def __init__(self, sections: dict[str, tuple[str, list[str]]]) -> None:
        self.sections = sections

    def set(self, name: str, text: str = "", status: str = "ok") -> Host:
        """A copy with another text (and status) in one section."""
        if name not in self.sections:
            raise KeyError(f"a survey has no section {name}")
        changed = copy.deepcopy(self.sections)
        changed[name] = (status, text.splitlines())
        return Host(changed)

    @property
    def lines(self) -> list[str]:
        out = [BEGIN]
        for name, (status, lines) in self.sections.items():
            out += [f"@@{name} {status}", *(f"|{each}" for each in lines)]
        return [*out, "@@end"]

    @property
    def survey(self) -> Survey:
        return parse_survey(self.lines, NOW_S)


def _sections(texts: Mapping[str, str | None]) -> dict[str, tuple[str, list[str]]]:
    return {name: ("absent", []) if text is None else ("ok", text.splitlines()) for name, text in texts.items()}


def _pci(kinds: list[str], driver: str) -> str:
    lines = []
    for at, kind in enumerate(kinds):
        device, sub_vendor, sub_device, class_ = kind.split()
        bound = driver if class_.startswith("0x03") else "-"
        lines.append(f"0000:{at + 6:02x}:00.0 0x10de {device} {sub_vendor} {sub_device} {class_} 0 {bound} 6 0")
    return "\n".join(lines)


APT_SETTINGS = """\
// written by gpu-bringup
DPkg::Lock::Timeout "600";
Unattended-Upgrade::Package-Blacklist {
    "^nvidia-";
    "^libnvidia-";
    "^libcuda";
    "^cuda-drivers";
    "^libxnvctrl";
};"""


def fresh(distro: str = "debian12", devices: list[str] | None = None, nouveau: bool = True) -> Host:
    """A cloud VM as it is handed over: no Docker, no driver, no headers; nouveau holds the GPU, or nothing does."""
    version, codename = RELEASES[distro]
    kernel = KERNELS[distro]
    os_release = (
        f'PRETTY_NAME="Debian GNU/Linux {version} ({codename})"\nNAME="Debian GNU/Linux"\nVERSION_ID="{version}"\n'
        f'VERSION="{version} ({codename})"\nVERSION_CODENAME={codename}\nID=debian'
    )
    return Host(
        _sections(
            {
                "root": "0", "clock": f"{NOW_S:.9f}", "uptime": "300.25 550.00", "arch": "x86_64", "kernel": kernel,
                "os_release": os_release,
                "boot_id": "1d8408c7-85af-481b-b132-fce540cb90fc",
                "command_line": f"BOOT_IMAGE=/boot/vmlinuz-{kernel} root=/dev/vda1 ro console=ttyS0",
                "meminfo": "MemTotal:       24683656 kB",
                "dmi": "==> /sys/class/dmi/id/sys_vendor\nQEMU\n==> /sys/class/dmi/id/product_name\nStandard PC",
                "container_env": "",
                "pci": _pci([H200] if devices is None else devices, "nouveau" if nouveau else "-"),
                "modules": "nouveau" if nouveau else "",
                "kernels": f"{kernel} headers=no nvidia=no image=yes",
                "driver_loaded": None, "driver_loaded_version": None, "driver_libraries": "", "device_nodes": "", "device_numbers": "",
                "modprobe": "", "runfile": None, "efi_secure_boot": "no EFI",
                "locks": "", "dpkg_updates": "",
                "repositories": "==> /etc/apt/sources.list\ndeb http://deb.example/debian stable main",
                "keyrings": "", "apt_preferences": "", "apt_settings": "", "version_locks": None, "module_stream": "",
                "installed_by_us": None, "held_by_us": None, "disabled_by_us": None, "pulled_by_us": None, "initramfs": "",
                "reboot_required": "",
                "driver_candidates": "",
                "daemon_json": None, "daemon_json_written": None, "docker_stat": None, "docker_limits": None, "containerd_limits": "",
                "daemon_json_pending": None, "daemon_json_taken_up": None, "docker_environment": "", "docker_group": None,
                "docker_path": "", "docker_snap": None, "docker_dropins": "", "toolkit_config": None, "cdi": "",
                "ldconfig": "/sbin/ldconfig", "rootless": "", "bootloader": "", "boot_arguments": None,
                "cgroup_controllers": "cpuset cpu io memory hugetlb pids rdma misc",
                "pid1_limits": "Max open files            1073741816           1073741816           files\n"
                "Max locked memory         8388608              8388608              bytes",
                "pid1_capabilities": "CapBnd:\t000001ffffffffff",
                "limits": "==> /etc/security/limits.conf", "systemd_dropins": "",
                "our_files": "", "provenance": None, "proof": None, "lock": "", "proxy": "",
                "smi": None, "gpu_processes": None, "docker_info": None, "docker_running": None, "docker_auto_remove": None,
                "docker_images": None,
                "cloud_init": "status: done", "virtualization": "kvm", "units": "",
                "system_memlock": "DefaultLimitMEMLOCK=8388608", "inhibitors": "",
                "disks": "/dev/vda1  264212084 25128644 200000000  24% /",
                "inodes": "/dev/vda1   16777216   445492  16331724   3% /",
                "secure_boot": None, "selinux": None, "dkms": None, "kernel_built": "Linux version 6.1 (gcc-12)",
                "module_version": None, "module_license": None, "module_files": None, "headers_offered": "", "edited_units": "",
                "toolkit": None, "engine": None, "packages": "cloud-init 22.4.2-1 install installed", "holds": "", "dpkg_audit": "",
            }
        )
    )  # fmt: skip


def packages_of(distro: str, fabric: bool) -> str:
    """dpkg-query's lines of a converged host; driver set and toolkit are held."""
    driver = ["nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced"]
    driver += ["nvidia-fabricmanager"] if fabric else []
    toolkit = ["nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1"]
    lines = [f"{each} {DRIVER}-1 hold installed" for each in driver] + [f"{each} {TOOLKIT}-1 hold installed" for each in toolkit]
    lines += [f"docker.io {DOCKERS[distro]}+dfsg1-1+b3 install installed", "libcuda1 580.159.04-1 hold installed"]
    headers = (f"linux-headers-{KERNELS[distro]}", "linux-headers-cloud-amd64")
    return "\n".join([*lines, *(f"{each} 1 install installed" for each in headers)])


def unit(name: str, active: str = "active", enabled: str = "enabled") -> str:
    state = f"LoadState=loaded\nActiveState={active}\nUnitFileState={enabled}"
    return f"Id={name}\n{state}\nFragmentPath=/lib/systemd/system/{name}\n"


def numbers(nodes: list[str], linked: str = "linked") -> str:
    """Lines of the section device_numbers, with the majors of a lab host."""
    fixed = {"/dev/nvidiactl": "195:255", "/dev/nvidia-uvm": "384:0", "/dev/nvidia-uvm-tools": "384:1"}
    return "\n".join(f"{each} {fixed.get(each) or f'195:{each[11:]}'} {linked} 666 root" for each in nodes)


def keyring(name: str) -> str:
    return f"/usr/share/keyrings/{name} {base64.b64encode((KEYS / 'ed25519.gpg').read_bytes()).decode()}"


def daemon(distro: str) -> dict[str, Any]:
    """daemon.json as it is on a converged host, with a key of the user's own."""
    wanted: dict[str, Any] = {
        "log-opts": {"max-size": "10m"},
        "default-shm-size": "8g",
        "runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}},
        "default-runtime": "nvidia",
        "default-ulimits": {"memlock": {"Name": "memlock", "Soft": -1, "Hard": -1}},
    }
    return wanted | ({"features": {"cdi": True}} if distro == "debian13" else {})


def converged(distro: str = "debian12", devices: list[str] | None = None) -> Host:
    """The same host after gpu_host.py with SETTINGS: nothing is left to do."""
    devices = [H200] if devices is None else devices
    count = sum(each.split()[3].startswith("0x03") for each in devices)
    fabric = NVSWITCH in devices
    cdi = "/etc/cdi/nvidia.yaml"
    nodes = [f"/dev/nvidia{at}" for at in range(count)]
    info = {
        "ServerVersion": DOCKERS[distro], "Runtimes": {"runc": {}, "nvidia": {}}, "DefaultRuntime": "nvidia",
        "RegistryConfig": {"IndexConfigs": {"docker.io": {}}}, "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"], "LiveRestoreEnabled": False,
    }  # fmt: skip
    services = ["docker.service", "nvidia-persistenced.service", *(["nvidia-fabricmanager.service"] if fabric else [])]
    loaded = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER}  Release Build\nGCC version: gcc 12.2.0"
    texts = {
        "pci": _pci(devices, "nvidia"), "modules": "nvidia_uvm\nnvidia_modeset\nnvidia",
        "kernels": f"{KERNELS[distro]} headers=yes nvidia=yes image=yes",
        "driver_loaded": loaded, "driver_loaded_version": DRIVER,
        "driver_libraries": f"/usr/lib/x86_64-linux-gnu/libcuda.so.{DRIVER}",
        "device_nodes": "\n".join([*nodes, "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]),
        "device_numbers": numbers([*nodes, "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]),
        "our_files": "".join(f"==> {path}\n{uncommented(text)}" for path, text in {**device_links.FILES, **cdi_step.FILES}.items()
        ),
        "modprobe": "\n".join(
            f"/etc/modprobe.d/gpu-bringup-nouveau.conf: {each}"
            for each in ("blacklist nouveau", "blacklist nova_core", "blacklist nova_drm", "options nouveau modeset=0")
        ),
        "apt_settings": f"==> {SETTINGS_FILE}\n" + APT_SETTINGS,
        "module_version": DRIVER, "module_license": "Dual MIT/GPL",
        "module_files": f"{DRIVER} /lib/modules/{KERNELS[distro]}/updates/dkms/nvidia.ko", "packages": packages_of(distro, fabric),
        "repositories": "".join(
            f"==> /etc/apt/sources.list.d/gpu-bringup-{name}.sources\n" + SOURCES.format(name=name, keyring=f"/usr/share/keyrings/{file}")
            for name, file in (
                ("nvidia-driver", "cuda-archive-keyring.gpg"), ("nvidia-toolkit", "nvidia-container-toolkit-keyring.gpg"),
            )
        ),
        "keyrings": f"{keyring('cuda-archive-keyring.gpg')}\n{keyring('nvidia-container-toolkit-keyring.gpg')}",
        "apt_preferences": "==> /etc/apt/preferences.d/gpu-bringup-driver\n"
        "Package: *nvidia* libcuda* libnvcuvid* libnvoptix* libxnvctrl*\nPin: version 580.*\nPin-Priority: 995",
        "daemon_json": json.dumps(daemon(distro), indent=2), "daemon_json_written": f"{NOW_S - 100:.3f}",
        # started 200 s after a boot that was 300.25 s ago; the name of a process may hold blanks and parentheses
        "docker_stat": f"812 (dockerd (x) y) S {' '.join(['1'] * 18)} 20100 {' '.join(['0'] * 30)}",
        "docker_limits": "Max locked memory         unlimited            unlimited            bytes",
        "docker_path": "/usr/bin/docker",
        "docker_info": json.dumps(info), "docker_running": "", "docker_auto_remove": "",
        "docker_images": f"registry.example:5000/pytorch:<none> {IMAGE}",
        "engine": f"Docker version {DOCKERS[distro]}+dfsg1, build 100c701", "toolkit": f"NVIDIA Container Toolkit CLI version {TOOLKIT}",
        "smi": "GPU 0: NVIDIA H200 (UUID: GPU-0)", "gpu_processes": "",
        "units": "\n".join([*map(unit, (*services, device_links.WATCH)), *(unit(each, active="inactive") for each in ONESHOTS)]),
        "docker_dropins": "".join(
            f"==> /etc/systemd/system/{each}.d/90-gpu-bringup.conf\n[Service]\nLimitMEMLOCK=infinity\n" for each in UNITS
        ),
        "containerd_limits": "Max locked memory         unlimited            unlimited            bytes",
        "systemd_dropins": "==> /etc/systemd/system.conf.d/90-gpu-bringup.conf\n[Manager]\nDefaultLimitMEMLOCK=infinity",
        "limits": "==> /etc/security/limits.d/90-gpu-bringup.conf\n"
        "* soft memlock unlimited\n* hard memlock unlimited\nroot soft memlock unlimited\nroot hard memlock unlimited",
        "cdi": "\n".join(f"{cdi} {each}" for each in [
            "kind nvidia.com/gpu", f"library libcuda.so.{DRIVER}", "device all", "device 0", *(f"node {each}" for each in nodes),
            "node /dev/nvidiactl", "node /dev/nvidia-uvm", "node /dev/nvidia-uvm-tools",
        ]) if distro == "debian13" else "",
    }  # fmt: skip
    host = fresh(distro, devices, nouveau=False)
    for name, text in texts.items():
        host = host.set(name, text)
    # the one file whose content only the product knows: as it would write it for this very host
    record = provenance.wanted(host.survey, target_of(host).target)
    host = host.set("provenance", provenance.text(record, "2026-11-30T21:43:00Z", "test"))
    return host.set("proof", proven(host))


def proven(host: Host, level: str = "standard") -> str:
    """proof.json as a run leaves it on this host that has proven it at this level."""
    target = replace(target_of(host).target, verify=cast(Verify, level))
    tried = proof.survival(host.set("proof", status="absent").survey, target)
    assert tried is not None
    return proof.recorded(tried.after, target)


def settings(**changed: object) -> Settings:
    """SETTINGS with changes: `settings(gpu_reboot="never")`."""
    return read_settings({**SETTINGS, **changed})


def target_of(host: Host, chosen: Settings | None = None) -> Plan:
    """The host's plan. AssertionError where it is refused."""
    plan = make_plan(host.survey, chosen or settings(), catalog.load(), TODAY)
    assert isinstance(plan, Plan), str(plan)
    return plan


EIGHT = [H200] * 8 + [NVSWITCH] * 4
BASES: Mapping[str, Callable[[], Host]] = {
    "fresh debian12 h200": lambda: fresh("debian12"),
    "fresh debian13 h200": lambda: fresh("debian13", nouveau=False),
    "fresh debian13 8 x h200": lambda: fresh("debian13", EIGHT, nouveau=False),
    "fresh debian12 t4": lambda: fresh("debian12", [T4]),
    "fresh debian12 v100": lambda: fresh("debian12", [V100]),
    "fresh debian12 without gpu": lambda: fresh("debian12", [], nouveau=False),
    "converged debian12 h200": lambda: converged("debian12"),
    "converged debian13 h200": lambda: converged("debian13"),
    "converged debian13 8 x h200": lambda: converged("debian13", EIGHT),
}
