"""GPUs by PCI id: what they are, and what drives them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Literal

from bringup.catalog.records import Source, Sourced, SourceName, load_file

KernelModule = Literal["open-only", "open-or-proprietary", "proprietary-only"]
# with-nvswitch: where the host sees NVSwitches; with-nvlink5: always, together with nvlsm; imex: the fabric is managed
# on the rack's switch trays, the host runs nvidia-imex; unknown: not published yet
FabricManager = Literal["no", "with-nvswitch", "with-nvlink5", "imex", "unknown"]
GpuClass = Literal["datacenter", "workstation", "consumer"]
NVIDIA = "10de"


@dataclass(frozen=True, slots=True)
class Nvlink:
    """NVLink of one GPU: generation, what it ends in, and bandwidth in GB/s, both directions together."""

    generation: int
    kind: Literal["board", "bridge", "mesh", "nvswitch", "nvswitch-or-mesh", "c2c", "rack"]
    gbs: Sourced[float]


@dataclass(frozen=True, slots=True)
class Gpu:
    """One product. `pci` holds device ids ("2335"), or "25b6/14a9" where a subdevice tells it from another product."""

    name: str
    pci: tuple[str, ...]
    architecture: str
    compute_capability: str
    class_: GpuClass = field(metadata={"key": "class"})
    form_factor: str
    kernel_module: KernelModule
    max_branch: int | None
    memory_gib: Sourced[float] | None
    memory_bandwidth_gbs: Sourced[float] | None
    sources: tuple[SourceName, ...]
    min_driver: str | None = None  # None: any driver up to max_branch
    min_driver_by_branch: Mapping[int, str] = field(default_factory=dict)
    fabric_manager: FabricManager = "no"
    nvlink: Nvlink | None = None
    mig_instances: int = 0
    fp32_tflops: Sourced[float] | None = None
    tf32_tflops: Sourced[float] | None = None  # tensor cores, dense
    bf16_tflops: Sourced[float] | None = None
    fp16_tflops: Sourced[float] | None = None
    note: str | None = None

    @property
    def needs_fabric_manager(self) -> bool:
        """Whether a host with this GPU manages its fabric; with-nvswitch boards only where the host sees the switches."""
        return self.fabric_manager in ("with-nvswitch", "with-nvlink5")

    def min_driver_in(self, branch: int) -> str | None:
        """The lowest version of a branch that knows this GPU; None: any of it, or no version is named for it."""
        if branch in self.min_driver_by_branch:
            return self.min_driver_by_branch[branch]
        return self.min_driver if self.min_driver and self.min_driver.split(".")[0] == str(branch) else None


@dataclass(frozen=True, slots=True)
class GpusFile:
    as_of: date
    sources: Mapping[str, Source]
    nvswitch_ids: tuple[str, ...]
    gpus: tuple[Gpu, ...]


@functools.cache
def load_gpus(folder: Path) -> GpusFile:
    return load_file(folder / "gpus.yml", GpusFile)


@functools.cache
def _by_device(folder: Path) -> Mapping[str, tuple[tuple[Gpu, str | None], ...]]:
    table: dict[str, list[tuple[Gpu, str | None]]] = {}
    for gpu in load_gpus(folder).gpus:
        for entry in gpu.pci:
            device, _, subdevice = entry.partition("/")
            table.setdefault(device, []).append((gpu, subdevice or None))
    return {device: tuple(entries) for device, entries in table.items()}


def candidates(folder: Path, vendor_device: str, subsystem: str | None) -> tuple[Gpu, ...]:
    """GPUs that a PCI function may be: none for an unknown id, several where the subdevice does not tell them apart.

    + vendor_device: "10de:2335"
    + subsystem: "10de:18be" or "18be"; board makers put their own vendor there, so only the device part counts
    """
    vendor, _, device = vendor_device.lower().rpartition(":")
    entries = _by_device(folder).get(device, ()) if vendor in ("", NVIDIA) else ()
    subdevice = subsystem.lower().rpartition(":")[2] if subsystem else None
    exact = [gpu for gpu, wanted in entries if wanted is not None and wanted == subdevice]
    # a product without subdevices of its own is the rest of its id, but only for a host whose subdevice is known
    rest = [gpu for gpu, wanted in entries if wanted is None or subdevice is None]
    chosen = exact or rest or [gpu for gpu, _ in entries]
    return tuple({gpu.name: gpu for gpu in chosen}.values())
