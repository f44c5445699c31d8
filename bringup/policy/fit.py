"""Can this driver run this image on these GPUs? Yes, no, or not known, and always why. Pure.

The rules are NVIDIA's (docs.nvidia.com/deploy/cuda-compatibility): within a major CUDA version any driver from its floor on runs
machine code; a newer major needs the image's forward compatibility package, which works on data-center GPUs and refuses others
with error 804; PTX is compiled by the driver, which must be as new as the toolkit that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bringup import versions
from bringup.catalog import Branch, Catalog, Gpu
from bringup.catalog.images import Image


@dataclass(frozen=True)
class Fit:
    """`runs` is None where it is not known. `forward`: only by the image's forward compatibility package."""

    runs: bool | None
    why: str
    forward: bool = False


@dataclass(frozen=True)
class Loaded:
    """A driver: its branch, and the version as far as it is known (the newest of the branch otherwise)."""

    branch: Branch
    version: str

    @classmethod
    def of(cls, wanted: str, catalog: Catalog) -> Loaded | None:
        """From `580` or `580.159.04`; None where the catalog does not know the branch."""
        number = int(wanted) if wanted.isdigit() else versions.branch_or_none(wanted)
        branch = catalog.branch(number) if number is not None else None
        return cls(branch, branch.newest if wanted.isdigit() else wanted) if branch else None


def fit(image: Image, driver: Loaded, boards: Iterable[Gpu], arch: str | None, catalog: Catalog) -> Fit:
    """The first reason against it, else the first thing that is not known, else yes and by which rule."""
    gpus = tuple(boards)
    found = [
        _architecture(image, arch),
        _driver(image, driver, gpus, catalog),
        *(_code(image, driver, each, catalog) for each in gpus),
    ]
    bad = next((each for each in found if each.runs is False), None) or next((each for each in found if each.runs is None), None)
    if bad is not None:
        return bad
    return Fit(True, "; ".join(dict.fromkeys(each.why for each in found if each.why)), any(each.forward for each in found))


def _architecture(image: Image, arch: str | None) -> Fit:
    if arch is None or arch in image.architectures:
        return Fit(True, "")
    return Fit(None if "architectures" in image.recalled else False, f"{image.name} is not known to exist for {arch}")


def _driver(image: Image, driver: Loaded, gpus: tuple[Gpu, ...], catalog: Catalog) -> Fit:
    """By its CUDA: the driver's own, minor-version compatibility, or the image's forward compatibility package."""
    has, wants = numbers(driver.branch.cuda), numbers(image.cuda)
    toolkit = catalog.cuda(image.cuda)
    floor = toolkit.driver_minor if toolkit else None
    others = sorted({each.name for each in gpus if each.class_ != "datacenter"})
    if has[:1] < wants[:1] or (floor and has[:1] == wants[:1] and not versions.at_least(driver.version, floor)):
        return _forward(image, driver, others, floor)
    if has[:1] > wants[:1]:
        return Fit(True, f"a driver of CUDA {driver.branch.cuda} runs CUDA {image.cuda}")
    if has >= wants:
        return Fit(True, f"CUDA {image.cuda} is within the driver's {driver.branch.cuda}")
    if image.compat is not None and others:
        return Fit(
            False,
            f"{image.name} brings CUDA {image.cuda}'s forward compatibility package, which fails with error 804 on {' and '.join(others)} "
            f"under a driver of CUDA {driver.branch.cuda}: it needs a driver for CUDA {image.cuda}",
        )
    return Fit(True, f"CUDA {image.cuda} runs on CUDA {driver.branch.cuda} by minor-version compatibility")


def _forward(image: Image, driver: Loaded, others: list[str], floor: str | None) -> Fit:
    number, cuda = driver.branch.number, driver.branch.cuda
    need = (
        f"{image.name} needs a driver for CUDA {image.cuda.split('.')[0]} ({floor} or newer), branch {number} is for CUDA {cuda}"
    )
    if cuda.split(".")[0] == image.cuda.split(".")[0]:
        need = f"{image.name} needs driver {floor} or newer, this one is {driver.version}"
    if image.compat is None:
        return Fit(False, need)
    if others:
        return Fit(False, f"{need}; its forward compatibility package fails on {' and '.join(others)} with error 804")
    stated = next((each for each in image.compat if versions.branch_or_none(each) == number), None)
    if stated is not None and versions.at_least(driver.version, stated):
        return Fit(
            True, f"its forward compatibility package runs on data-center GPUs with driver {stated} or newer", forward=True
        )
    if image.compat:
        return Fit(False, f"{need}; its forward compatibility package is for {', '.join(f'{each}+' for each in image.compat)}")
    return Fit(None, f"{need}; whether its forward compatibility package works with this driver is not known")


def _code(image: Image, driver: Loaded, gpu: Gpu, catalog: Catalog) -> Fit:
    """Machine code of sm_XY runs on X.Z with Z >= Y, never across major versions; PTX of compute_XY on all that is newer."""
    toolkit = catalog.cuda(image.cuda)
    if image.sm is None and toolkit and numbers(gpu.compute_capability) < numbers(toolkit.compute_capability_min):
        return Fit(False, f"CUDA {image.cuda} has nothing for {gpu.name} (compute capability {gpu.compute_capability})")
    if image.sm is None and image.torch is None:
        return Fit(True, "")  # CUDA alone: the code comes with what is run in it
    if image.sm is None:
        return Fit(None, f"it is not known whether {image.name} has code for {gpu.name}")
    major, minor = numbers(gpu.compute_capability)
    code = max((each for each in image.sm if each // 10 == major and each % 10 <= minor), default=None)
    if code is not None:
        return Fit(True, f"sm_{code} runs on {gpu.compute_capability}")
    lacks = f"{image.name} has no code for {gpu.name} (compute capability {gpu.compute_capability})"
    ptx = max((each for each in image.ptx if each <= major * 10 + minor), default=None)
    if ptx is None:
        return Fit(False, lacks)
    if numbers(driver.branch.cuda) < numbers(image.cuda):
        full = toolkit.driver_full if toolkit else None
        needs = f"driver {full}" if full else f"a driver for CUDA {image.cuda}"
        return Fit(
            False, f"{lacks} but PTX, which needs {needs} or newer to be compiled, and branch {driver.branch.number} is older"
        )
    return Fit(True, f"PTX compute_{ptx} is compiled for {gpu.compute_capability} at the first start, which takes long")


def numbers(text: str | None) -> tuple[int, ...]:
    """(13, 2) of `13.2`, (2, 9, 0) of `2.9.0a0+145a3a7bda`."""
    found = []
    for part in (text or "0").split("+")[0].split("."):
        digits = part[: next((at for at, each in enumerate(part) if not each.isdigit()), len(part))]
        found.append(int(digits or 0))
    return tuple(found)
