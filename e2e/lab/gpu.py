"""What is plugged into a host's PCI bus: GPU models, profiles of hosts, and the files in which the simulated kernel finds them.

A host sees them where a real one does: below /sys/bus/pci, and once the (stand-in) driver is loaded in /proc/driver/nvidia,
nvidia-smi and libcuda. standins/rootfs/usr/lib/simulated-gpu is the other half of this file: it runs inside the host.
"""

from __future__ import annotations

import shutil
import struct
import uuid
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError

_NVIDIA = 0x10DE
_GPU_CLASS = 0x030200
_BRIDGE_CLASS = 0x068000
_NVSWITCH = 0x22A3
# where a cloud VM and an HGX board have them
_VM_SLOTS = ("0000:00:06.0", "0000:00:07.0")
_HGX_SLOTS = tuple(f"0000:{bus}:00.0" for bus in ("19", "3b", "4c", "5d", "9b", "bb", "cb", "db"))
_SWITCH_SLOTS = tuple(f"0000:{bus}:00.0" for bus in ("07", "08", "09", "0a"))
# seen by the host, in the simulated kernel's folder
_SEEN_AT = "/run/simulated-gpu/hardware"


@dataclass(frozen=True)
class GpuModel:
    """Sizes are in MiB, power in W, clocks in MHz, PCI ids as numbers."""

    name: str
    architecture: str
    device: int
    subsystem: int
    compute_cap: str
    multiprocessors: int
    memory: int
    memory_reserved: int
    bar1: int
    power_limit: int
    power_min: int
    clock_sm: int
    clock_memory: int
    clock_video: int
    link_gen: int
    mig: bool
    board_part: str
    gpu_part: str
    vbios: str
    inforom: str
    gsp: bool = True
    """Has a System Processor, without which the open kernel modules do not run it."""


H200 = GpuModel(
    name="NVIDIA H200", architecture="Hopper", device=0x2335, subsystem=0x18BE, compute_cap="9.0", multiprocessors=132,
    memory=143771, memory_reserved=616, bar1=262144, power_limit=700, power_min=200, clock_sm=1980, clock_memory=3201,
    clock_video=1545, link_gen=5, mig=True, board_part="692-2G520-0282-001", gpu_part="2335-895-A1", vbios="96.00.A5.00.1A",
    inforom="G520.0282.02.02",
)  # fmt: skip
V100 = GpuModel(
    name="Tesla V100-SXM2-32GB", architecture="Volta", device=0x1DB5, subsystem=0x1249, compute_cap="7.0", multiprocessors=80,
    memory=32768, memory_reserved=267, bar1=32768, power_limit=300, power_min=150, clock_sm=1530, clock_memory=877, clock_video=1372,
    link_gen=3, mig=False, board_part="900-2G503-0010-000", gpu_part="1DB5-895-A1", vbios="88.00.48.00.02",
    inforom="G503.0203.00.05", gsp=False,
)  # fmt: skip
T4 = GpuModel(
    name="Tesla T4", architecture="Turing", device=0x1EB8, subsystem=0x12A2, compute_cap="7.5", multiprocessors=40,
    memory=15360, memory_reserved=437, bar1=256, power_limit=70, power_min=60, clock_sm=1590, clock_memory=5001, clock_video=1470,
    link_gen=3, mig=False, board_part="900-2G183-0000-001", gpu_part="1EB8-895-A1", vbios="90.04.38.00.03",
    inforom="G183.0200.00.02",
)  # fmt: skip
L4 = GpuModel(
    name="NVIDIA L4", architecture="Ada Lovelace", device=0x27B8, subsystem=0x16CA, compute_cap="8.9", multiprocessors=58,
    memory=23034, memory_reserved=570, bar1=32768, power_limit=72, power_min=40, clock_sm=2040, clock_memory=6251, clock_video=1770,
    link_gen=4, mig=False, board_part="900-2G193-0000-001", gpu_part="27B8-895-A1", vbios="95.04.29.00.06",
    inforom="G193.0200.00.01",
)  # fmt: skip


@dataclass(frozen=True)
class GpuProfile:
    """What a host has. nouveau: its kernel's own driver takes the GPUs at boot unless the host forbids it.

    initramfs: the host boots from one, with nouveau in it: forbidding it on the disk alone is then too late.
    """

    name: str
    gpus: tuple[GpuModel, ...] = ()
    switches: int = 0
    nouveau: bool = False
    initramfs: bool = False


PROFILES = {
    profile.name: profile
    for profile in (
        GpuProfile("none"),
        GpuProfile("h200", gpus=(H200,), nouveau=True),
        GpuProfile("h200x8", gpus=(H200,) * 8, switches=4),
        GpuProfile("h200-initramfs", gpus=(H200,), nouveau=True, initramfs=True),
        GpuProfile("v100", gpus=(V100,)),
        GpuProfile("t4", gpus=(T4,)),
        GpuProfile("mixed", gpus=(V100, L4)),
    )
}


def gpu_profile(name: str) -> GpuProfile:
    """The profile of this name. LabError when there is none."""
    if name not in PROFILES:
        raise LabError(f"the lab knows no GPU profile {name!r}: use one of {', '.join(PROFILES)}")
    return PROFILES[name]


def prepare_gpu(profile: GpuProfile, folder: Path) -> list[str]:
    """Writes one host's hardware into the folder, made if need be; returns the arguments with which systemd-nspawn shows it.

    Serial numbers and UUIDs follow from the folder's path, so a host has the same GPUs whenever it is switched on.
    """
    for name in ("gpus", "pci"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "gpus").mkdir(parents=True)
    flags = {"nouveau": profile.nouveau, "initramfs": profile.initramfs}
    lines = [f"name={profile.name}", *(f"{name}={'yes' if value else 'no'}" for name, value in flags.items())]
    (folder / "profile").write_text("".join(f"{line}\n" for line in lines))
    devices = folder / "pci" / "devices"
    (folder / "pci" / "drivers").mkdir(parents=True)
    write_pci_device(devices / "0000:00:03.0", (0x1AF4, 0x1041), (0x1AF4, 0x0001), 0x020000)  # a VM's network card
    slots = _VM_SLOTS if len(profile.gpus) <= len(_VM_SLOTS) else _HGX_SLOTS
    for index, (model, slot) in enumerate(zip(profile.gpus, slots, strict=False)):
        node = -1 if slots is _VM_SLOTS else index * 2 // len(profile.gpus)
        ids, subsystem = (_NVIDIA, model.device), (_NVIDIA, model.subsystem)
        write_pci_device(devices / slot, ids, subsystem, _GPU_CLASS, numa_node=node, bars={0: 16, 1: model.bar1, 3: 32})
        values = _gpu_values(model, slot, index, str(folder), nvswitch=profile.switches > 0)
        (folder / "gpus" / str(index)).write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    for slot in _SWITCH_SLOTS[: profile.switches]:
        write_pci_device(devices / slot, (_NVIDIA, _NVSWITCH), (_NVIDIA, 0x1796), _BRIDGE_CLASS, numa_node=0, bars={0: 32})
    return [f"--bind-ro={folder}:{_SEEN_AT}"]


def write_pci_device(
    folder: Path,
    ids: tuple[int, int],
    subsystem: tuple[int, int],
    device_class: int,
    *,
    numa_node: int = -1,
    bars: dict[int, int] | None = None,
) -> None:
    """One device as sysfs shows it. ids and subsystem: (vendor, device); bars: number of a memory window -> its size in MiB."""
    folder.mkdir(parents=True, exist_ok=True)
    windows = [(0, 0, 0)] * 13  # start, end, flags; sysfs shows so many
    registers = [0] * 6
    for number, size in (bars or {}).items():
        # the first is below 4 GiB; the others are 64-bit, prefetchable, and take up two registers
        start, flags = (0xA0000000, 0x40200) if number == 0 else (number << 42, 0x14220C)
        windows[number] = (start, start + (size << 20) - 1, flags)
        registers[number] = start & 0xFFFFFFF0 | flags & 0xF
        if number:
            registers[number + 1] = start >> 32
    texts = {
        "vendor": f"0x{ids[0]:04x}",
        "device": f"0x{ids[1]:04x}",
        "subsystem_vendor": f"0x{subsystem[0]:04x}",
        "subsystem_device": f"0x{subsystem[1]:04x}",
        "class": f"0x{device_class:06x}",
        "revision": "0xa1",
        "irq": "0",
        "numa_node": str(numa_node),
        "resource": "\n".join(f"0x{start:016x} 0x{end:016x} 0x{flags:016x}" for start, end, flags in windows),
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")
    command = 0x0406
    config = struct.pack("<4H2I6IIHH", *ids, command, 0, device_class << 8 | 0xA1, 0, *registers, 0, *subsystem)
    (folder / "config").write_bytes(config.ljust(256, b"\0"))


def _gpu_values(model: GpuModel, slot: str, index: int, host: str, nvswitch: bool) -> dict[str, object]:
    """All that the driver can tell about one GPU; nvidia-smi's template and table name these keys."""
    name = uuid.uuid5(uuid.NAMESPACE_URL, f"simulated-gpu {host} {index}")
    domain, bus, device = slot.split(".")[0].split(":")
    return {
        "address": slot,
        "minor": index,
        "name": model.name,
        "brand": "NVIDIA",
        "architecture": model.architecture,
        "uuid": f"GPU-{name}",
        "serial": 1650000000000 + name.int % 10**9,
        "pdi": f"0x{name.int >> 64:016x}",
        "board_id": f"0x{int(bus, 16) << 8 | int(device, 16):x}",
        "board_part": model.board_part,
        "gpu_part": model.gpu_part,
        "vbios": model.vbios,
        "inforom": model.inforom,
        "module_id": index + 1,
        "virtualization": "None" if nvswitch else "Pass-Through",
        "bus_id": f"0000{domain}:{bus}:{device}.0".upper(),
        "pci_domain": domain.upper(),
        "pci_bus": bus.upper(),
        "pci_device": device.upper(),
        "pci_device_id": f"{model.device:04X}{_NVIDIA:04X}",
        "pci_sub_device_id": f"{model.subsystem:04X}{_NVIDIA:04X}",
        "query_device_id": f"0x{model.device:04X}{_NVIDIA:04X}",
        "query_sub_device_id": f"0x{model.subsystem:04X}{_NVIDIA:04X}",
        "compute_cap": model.compute_cap,
        "multiprocessors": model.multiprocessors,
        "memory_total": model.memory,
        "memory_reserved": model.memory_reserved,
        "memory_used": 0,
        "memory_free": model.memory - model.memory_reserved,
        "bar1": model.bar1,
        "bar1_free": model.bar1 - 1,
        "power_limit": f"{model.power_limit:.2f}",
        "power_min": f"{model.power_min:.2f}",
        "power_draw": "71.00",
        "temperature": 37,
        "temperature_memory": 37,
        "clocks_max_sm": model.clock_sm,
        "clocks_max_mem": model.clock_memory,
        "clocks_max_video": model.clock_video,
        "link_gen": model.link_gen,
        "link_width": 16,
        "ecc": "Enabled",
        "mig": "Disabled" if model.mig else "N/A",
        "nvswitch": "yes" if nvswitch else "no",
        "gsp_processor": "yes" if model.gsp else "no",
    }
