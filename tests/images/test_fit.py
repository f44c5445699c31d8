"""Which image runs on which GPU with which driver: the table in fits.yml, and what it cannot hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bringup import catalog
from bringup.catalog import Gpu
from bringup.catalog.images import Image
from bringup.policy.fit import Fit, Loaded, fit
from bringup.report.images import gpus_called
from bringup.settings import read_settings

CATALOG = catalog.load()
ROWS = yaml.safe_load((Path(__file__).parent / "fits.yml").read_text())
ANSWERS = {"yes": True, True: True, "no": False, False: False, "?": None}  # YAML reads yes and no as booleans


def fitted(image: Image, driver: str, *gpus: str, arch: str | None = None) -> Fit:
    loaded = Loaded.of(driver, CATALOG)
    assert loaded is not None
    boards: list[Gpu] = [found for each in gpus for found in gpus_called(each, CATALOG)]
    return fit(image, loaded, boards, arch, CATALOG)


def test_the_table_is_long_enough_and_has_no_row_twice() -> None:
    assert len(ROWS) >= 80
    assert len({tuple(map(str, row[:3])) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("gpu", "driver", "name", "runs", "why"), ROWS, ids=lambda value: str(value)[:40])
def test_row(gpu: str, driver: str, name: str, runs: bool | str, why: str) -> None:
    image = CATALOG.image(name)
    assert image is not None
    arch = "aarch64" if gpu.startswith(("GH", "GB")) else "x86_64"
    found = fitted(image, driver, gpu, arch=arch)
    assert (found.runs, why in found.why) == (ANSWERS[runs], True), found.why


def own(**facts: object) -> Image:
    given = {"reference": "registry.example/train:7", "cuda": "12.4", "torch": "2.9.1", "sm": [80, 90], **facts}
    return read_settings({"gpu_images_own": {"train": given}}).images_own["train"]


@pytest.mark.parametrize(
    ("facts", "driver", "gpu", "runs", "why"),
    [
        # PTX goes to any newer GPU, and has to be compiled by a driver of its own CUDA or newer
        ({"ptx": [90]}, "550", "H100 SXM5 80GB", True, "sm_90 runs on 9.0"),
        ({"ptx": [90], "cuda": "12.8"}, "570", "B200 SXM6", True, "PTX compute_90 is compiled for 10.0 at the first start"),
        ({"ptx": [90], "cuda": "13.0"}, "580", "GeForce RTX 5090", True, "PTX compute_90 is compiled for 12.0"),
        ({"ptx": [90], "cuda": "12.9"}, "570", "B200 SXM6", False, "needs driver 575.51.03 or newer to be compiled"),
        ({"ptx": [90], "cuda": "13.5"}, "580", "B200 SXM6", False, "needs a driver for CUDA 13.5 or newer to be compiled"),
        ({"ptx": [90]}, "550", "A100 SXM4 80GB", True, "sm_80 runs on 8.0"),
        ({"sm": [90], "ptx": [90]}, "550", "A100 SXM4 80GB", False, "has no code for A100 SXM4 80GB"),  # PTX never goes back
        ({"sm": [80]}, "550", "L40S", True, "sm_80 runs on 8.9"),
        ({"sm": [86]}, "550", "A100 SXM4 80GB", False, "has no code for A100 SXM4 80GB"),  # 8.6 code does not run on 8.0
        ({"sm": []}, "550", "L4", False, "has no code for L4"),
        ({"compat": ["535.86"], "cuda": "13.0"}, "535.309.01", "H100 SXM5 80GB", True, "runs on data-center GPUs with driver 535.86"),
        ({"compat": ["535.200"], "cuda": "13.0"}, "535.183.01", "H100 SXM5 80GB", False, "is for 535.200+"),
        ({"compat": ["535.86"], "cuda": "13.0"}, "535.309.01", "GeForce RTX 4090", False, "error 804"),
    ],
)  # fmt: skip
def test_own_images(facts: dict[str, object], driver: str, gpu: str, runs: bool | None, why: str) -> None:
    found = fitted(own(**facts), driver, gpu)
    assert (found.runs, why in found.why) == (runs, True), found.why


def test_one_gpu_that_cannot_decides_for_the_host() -> None:
    image = CATALOG.image("pytorch-2.14.1-cuda13.2")
    assert image is not None
    assert fitted(image, "580", "L4").runs is True
    found = fitted(image, "580", "L4", "V100 SXM2 32GB")
    assert found.runs is False and "Tesla V100" in found.why and "L4" not in found.why


def test_forward_compatibility_is_said() -> None:
    found = fitted(own(compat=["535.86"], cuda="13.0"), "535.309.01", "H100 SXM5 80GB")
    assert found.forward and not fitted(own(), "535.309.01", "H100 SXM5 80GB").forward


def test_an_image_of_another_architecture() -> None:
    assert fitted(own(), "580", arch="aarch64").runs is False
    assert fitted(own(architectures=["x86_64", "aarch64"]), "580", arch="aarch64").runs is True
    recalled = CATALOG.image("pytorch-2.14.1-cuda13.2")  # its architectures were looked up nowhere
    assert recalled is not None and fitted(recalled, "580", arch="aarch64").runs is None


@pytest.mark.parametrize("wanted", ["123", "581.10.02", "595.1.1.1", "newest"])
def test_a_driver_that_the_catalog_does_not_know(wanted: str) -> None:
    assert Loaded.of(wanted, CATALOG) is None
