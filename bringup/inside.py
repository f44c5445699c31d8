"""What is inside an image that nobody described: as it states itself, or as a probe found it; and whether that runs on a host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bringup.catalog import Catalog, Gpu
from bringup.catalog.images import Image
from bringup.images_lock import Inside
from bringup.policy.fit import Loaded, fit, numbers


def stated(environment: Iterable[str], labels: Mapping[str, str]) -> Inside:
    """From the variables and labels of an image's settings.

    TORCH_CUDA_ARCH_LIST counts in NVIDIA's PyTorch images alone, whose torch is built with it: elsewhere it is for what people build.
    """
    values = dict(each.partition("=")[::2] for each in environment)
    cuda = values.get("CUDA_VERSION") or labels.get("com.nvidia.cuda.version") or ""
    version = re.match(r"\d+\.\d+", cuda)
    listed = values.get("TORCH_CUDA_ARCH_LIST", "") if "NVIDIA_PYTORCH_VERSION" in values else ""
    compat = any("CUDA_COMPAT" in name for name in values) or "/compat" in values.get("LD_LIBRARY_PATH", "")
    return Inside(version[0] if version else None, values.get("PYTORCH_VERSION"), _listed(listed), compat or None)


def _listed(text: str) -> tuple[str, ...]:
    """`7.5 8.0 9.0+PTX` as `sm_75`, `sm_80`, `sm_90`, `compute_90`; () where a word is none of these."""
    found: list[str] = []
    for word in re.split(r"[ ;]+", text.strip()):
        match = re.fullmatch(r"(\d+)\.(\d)([af]?)(\+PTX)?", word)
        if match is None:
            return ()
        found.append(f"sm_{match[1]}{match[2]}{match[3]}")
        if match[4]:
            found.append(f"compute_{match[1]}{match[2]}")
    return tuple(found)


def unfit(name: str, inside: Inside, driver: Loaded, boards: Iterable[Gpu], catalog: Catalog) -> str | None:
    """Why an image cannot run, in words; None where it can, and where that is not known."""
    gpus = tuple(boards)
    if inside.cuda is None:
        return None
    own = {"".join(map(str, numbers(each.compute_capability))) for each in gpus}
    # sm_90a runs on 9.0 alone, sm_100f on its family
    sm = [re.fullmatch(r"sm_(\d+)([af]?)", each) for each in inside.code]
    usable = tuple(int(each[1]) for each in sm if each and (each[2] != "a" or each[1] in own))
    ptx = tuple(int(each[8:]) for each in inside.code if re.fullmatch(r"compute_\d+", each))
    compats: list[tuple[str, ...] | None] = [()] if inside.compat else [None] if inside.compat is False else [(), None]
    found = [
        fit(
            Image(
                name, name, None, "own", "runtime", inside.torch, inside.cuda, usable if inside.code else None, ("x86_64",), (),
                ptx=ptx, compat=each,
            ),
            driver, gpus, None, catalog,
        )
        for each in compats
    ]  # fmt: skip
    return found[0].why if all(each.runs is False for each in found) else None


def found_inside(value: object) -> Inside | None:
    """From what bringup/probes/image_code.py prints; None where it found no torch that is built with CUDA."""
    if not isinstance(value, Mapping) or not isinstance(value.get("cuda"), str):
        return None
    code = [each for each in value.get("code") or () if isinstance(each, str)]
    torch = value.get("torch")
    return Inside(value["cuda"], torch if isinstance(torch, str) else None, tuple(code), bool(value.get("compat")))


def in_words(inside: Inside) -> str:
    """`torch 2.9.1, CUDA 12.8, code for sm_80 sm_90 compute_90`."""
    return f"torch {inside.torch or '?'}, CUDA {inside.cuda or '?'}, code for {' '.join(inside.code) or '? (it does not tell)'}"
