"""What an image states of itself, what a probe finds in it, and whether that runs here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bringup import catalog, probes
from bringup.images_lock import Inside, Locked, Platform, lock_text, parse_lock
from bringup.inside import found_inside, in_words, stated, unfit
from bringup.policy.fit import Loaded
from bringup.report.images import gpus_called

CATALOG = catalog.load()
NGC = ["NVIDIA_PYTORCH_VERSION=25.10", "CUDA_VERSION=13.0.2.006", "PYTORCH_VERSION=2.9.0a0+145a3a7"]


@pytest.mark.parametrize(
    ("environment", "labels", "found"),
    [
        (["PATH=/bin"], {}, Inside()),
        (["CUDA_VERSION=12.8.1"], {}, Inside("12.8")),
        ([], {"com.nvidia.cuda.version": "11.8.0"}, Inside("11.8")),
        (["CUDA_VERSION=new"], {}, Inside()),
        ([*NGC, "TORCH_CUDA_ARCH_LIST=7.5 8.0 9.0a 12.0+PTX"], {},
         Inside("13.0", "2.9.0a0+145a3a7", ("sm_75", "sm_80", "sm_90a", "sm_120", "compute_120"))),
        ([*NGC, "TORCH_CUDA_ARCH_LIST=8.0;9.0"], {}, Inside("13.0", "2.9.0a0+145a3a7", ("sm_80", "sm_90"))),
        ([*NGC, "TORCH_CUDA_ARCH_LIST=Ampere 9.0"], {}, Inside("13.0", "2.9.0a0+145a3a7")),  # a word that says nothing exact
        (["CUDA_VERSION=12.8.1", "TORCH_CUDA_ARCH_LIST=9.0"], {}, Inside("12.8")),  # what people build in it, not torch's own
        (["CUDA_VERSION=12.8.1", "LD_LIBRARY_PATH=/usr/local/cuda/compat:/x"], {}, Inside("12.8", compat=True)),
        (["CUDA_VERSION=12.8.1", "_CUDA_COMPAT_PATH=/usr/local/cuda/compat"], {}, Inside("12.8", compat=True)),
    ],
)  # fmt: skip
def test_what_an_image_states(environment: list[str], labels: dict[str, str], found: Inside) -> None:
    assert stated(environment, labels) == found


@pytest.mark.parametrize(
    ("inside", "driver", "gpu", "says"),
    [
        (Inside("12.4", "2.6.0+cu124", ("sm_80", "sm_86", "sm_90")), "580", "GeForce RTX 5090", "a:1 has no code for GeForce RTX 5090"),
        (Inside("12.4", "2.6.0+cu124", ("sm_80", "sm_86", "sm_90")), "580", "L40S", None),
        (Inside("12.4", "2.6.0+cu124", ("sm_90", "compute_90")), "580", "GeForce RTX 5090", None),  # PTX, by a newer driver
        (Inside("13.0", "2.9.1", ("sm_75", "sm_90")), "580", "V100 SXM2 32GB", "no code for Tesla V100"),
        (Inside("13.0", "2.9.1", ("sm_90",), compat=False), "570.211.01", "H100 SXM5 80GB", "needs a driver for CUDA 13 (580 or newer)"),
        (Inside("13.0", "2.9.1", ("sm_90",)), "570.211.01", "H100 SXM5 80GB", None),  # a compatibility package may be there
        (Inside("13.0", "2.9.1", ("sm_86",)), "570.211.01", "GeForce RTX 3090", "needs a driver for CUDA 13"),  # and helps no GeForce
        (Inside("12.8", "2.9.1", ("sm_86",)), "525.147.05", "GeForce RTX 3090", None),  # minor versions, where no package is
        (Inside("12.8", "2.9.1", ("sm_86",), compat=True), "525.147.05", "GeForce RTX 3090", "error 804"),
        (Inside("12.8", "2.9.1", ("sm_90a",)), "570.211.01", "H100 SXM5 80GB", None),
        (Inside("12.8", "2.9.1", ("sm_90a",)), "570.211.01", "B200 SXM6", "no code for B200"),
        (Inside("12.8", "2.9.1"), "580", "H100 SXM5 80GB", None),  # not known
        (Inside(None, "2.9.1", ("sm_50",)), "580", "H100 SXM5 80GB", None),
        (Inside(), "580", "H100 SXM5 80GB", None),
    ],
)  # fmt: skip
def test_whether_it_runs(inside: Inside, driver: str, gpu: str, says: str | None) -> None:
    loaded = Loaded.of(driver, CATALOG)
    assert loaded is not None
    found = unfit("a:1", inside, loaded, gpus_called(gpu, CATALOG), CATALOG)
    assert (found is None) if says is None else (found is not None and says in found), found


def test_the_lock_file_keeps_it() -> None:
    inside = Inside("12.8", "2.9.1", ("sm_90", "compute_90"), compat=False)
    entries = {"r.example/a:1": Locked("sha256:" + "a" * 64, "2026-12-01", {"x86_64": Platform(1, None, (), inside)})}
    assert parse_lock(lock_text(entries), "x") == entries
    odd = lock_text(entries).replace("cuda: '12.8'", "cuda: 12.8").replace("- sm_90", "- 90")
    found = parse_lock(odd, "x")["r.example/a:1"].platforms["x86_64"].inside
    assert found == Inside(None, "2.9.1", ("compute_90",), compat=False)
    assert parse_lock(lock_text(entries).replace("inside:", "inside: 7\n        other:"), "x")["r.example/a:1"].platforms[
        "x86_64"
    ].inside == (Inside())


TORCH = "__version__ = '2.9.1+cu128'\nclass version:\n    cuda = '12.8'\nclass _C:\n    {flags}\n"
TELLS = TORCH.format(flags="_cuda_getArchFlags = staticmethod(lambda: 'sm_80 sm_90 compute_90')")
SILENT = TORCH.format(flags="pass")
CUOBJDUMP = """case $1 in
--list-elf) echo 'ELF file    1: libtorch_cuda.1.sm_80.cubin'; echo 'ELF file    2: libtorch_cuda.2.sm_90a.cubin' ;;
--list-ptx) echo 'PTX file    1: libtorch_cuda.1.sm_90.ptx' ;;
esac"""


def probed(folder: Path, torch: str | None, cuobjdump: str = "exit 1") -> dict[str, Any]:
    """What the probe prints in an image with such a torch and such a cuobjdump."""
    (folder / "cuobjdump").write_text(f"#!/bin/sh\n{cuobjdump}\n")
    (folder / "cuobjdump").chmod(0o755)
    if torch is not None:
        (folder / "torch" / "lib").mkdir(parents=True)
        (folder / "torch" / "__init__.py").write_text(torch)
        (folder / "torch" / "lib" / "libtorch_cuda.so").touch()
    environment = {**os.environ, "PYTHONPATH": str(folder), "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-"],
        input=probes.source("image_code"),
        text=True,
        capture_output=True,
        check=True,
        env=environment,
        timeout=60,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_torch_itself_tells_what_it_is_built_for(tmp_path: Path) -> None:
    found = probed(tmp_path, TELLS, CUOBJDUMP)
    assert (found["torch"], found["cuda"], found["code"]) == ("2.9.1+cu128", "12.8", ["sm_80", "sm_90", "compute_90"])
    inside = found_inside(found)
    assert inside is not None and in_words(inside) == "torch 2.9.1+cu128, CUDA 12.8, code for sm_80 sm_90 compute_90"


def test_cuobjdump_is_asked_where_torch_does_not_tell(tmp_path: Path) -> None:
    assert probed(tmp_path, SILENT, CUOBJDUMP)["code"] == ["compute_90", "sm_80", "sm_90a"]


def test_an_image_whose_torch_cannot_be_imported_or_is_none_is_not_known(tmp_path: Path) -> None:
    broken = probed(tmp_path, "raise OSError('libcudart.so.12: cannot open shared object file')", CUOBJDUMP)
    assert "libcudart" in broken["failed"] and broken["code"] and found_inside(broken) is None
    (tmp_path / "none").mkdir()
    assert "No module named 'torch'" in probed(tmp_path / "none", None)["failed"]


@pytest.mark.parametrize("value", [None, 7, {}, {"cuda": None, "code": ["sm_90"]}, {"cuda": 12.8}])
def test_an_answer_that_tells_no_cuda_is_not_known(value: object) -> None:
    assert found_inside(value) is None
