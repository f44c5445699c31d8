"""Support of branches over time, module kinds, security floors, images on drivers and GPUs."""

from __future__ import annotations

from datetime import date

import pytest

from bringup.catalog import Catalog, Gpu


def gpu(catalog: Catalog, name: str) -> Gpu:
    return next(gpu for gpu in catalog.gpus if gpu.name == name)


def test_a_month_begins_on_its_first_day_and_ends_on_its_last(catalog: Catalog) -> None:
    branch = catalog.branch(580)
    assert branch is not None
    assert branch.is_supported(date(2028, 6, 30)) is True
    assert branch.is_supported(date(2028, 7, 1)) is False


def test_support_is_unknown_where_no_end_was_published(catalog: Catalog) -> None:
    branch = catalog.branch(615)
    assert branch is not None and branch.is_supported(date(2026, 11, 30)) is None
    assert catalog.branch(581) is None


def test_module_kinds_begin_and_end(catalog: Catalog) -> None:
    offers = catalog.module_rules.offers
    assert [offers(number, "open") for number in (510, 515, 620)] == [False, True, True]
    assert [offers(number, "proprietary") for number in (510, 610, 615)] == [True, True, False]


def test_security_floor_is_of_its_branch_or_unknown(catalog: Catalog) -> None:
    floor = catalog.security_floor(580)
    assert floor is not None and floor.startswith("580.")
    assert catalog.security_floor(450) is None


def test_a_toolkit_is_found_by_its_patch_release(catalog: Catalog) -> None:
    assert catalog.cuda("13.0.2") == catalog.cuda("13.0") is not None
    assert catalog.cuda("12.7") is None
    newest = catalog.cuda("13.5")
    assert newest is not None and newest.driver_full is None


@pytest.mark.parametrize(
    ("image", "branch", "board", "problem"),
    [
        ("pytorch-2.14.1-cuda13.2", 580, "H200 SXM 141GB", None),  # 13.2 on a driver for 13.0: minor versions are compatible
        ("pytorch-2.14.1-cuda13.2", 570, "H200 SXM 141GB", "needs a driver for CUDA 13"),
        ("pytorch-2.14.1-cuda12.6", 580, "H200 SXM 141GB", None),
        ("pytorch-2.14.1-cuda12.6", 535, "H200 SXM 141GB", None),
        ("pytorch-2.14.1-cuda12.6", 470, "Tesla T4", "needs a driver for CUDA 12"),
        ("pytorch-2.14.1-cuda12.6", 580, "B200 SXM6", "has no code for B200"),
        ("pytorch-2.14.1-cuda13.2", 580, "B300 SXM6 AC", None),  # 10.3 runs sm_100
        ("pytorch-2.14.1-cuda13.2", 580, "L40S", None),  # 8.9 runs sm_86
        ("pytorch-2.14.1-cuda13.2", 580, "Tesla V100 SXM2 16GB", "has no code for Tesla V100"),
        ("pytorch-2.14.1-cuda12.6", 580, "Tesla P40", None),  # 6.1 runs sm_60
        ("ngc-pytorch-24.12", 580, "H200 SXM 141GB", "not known whether"),
        ("cuda-13.4.2-base", 580, "H200 SXM 141GB", None),  # no torch, so no code to ask for
    ],
)
def test_images_on_drivers_and_gpus(catalog: Catalog, image: str, branch: int, board: str, problem: str | None) -> None:
    found, driver = catalog.image(image), catalog.branch(branch)
    assert found is not None and driver is not None
    said = found.problem(driver, [gpu(catalog, board)])
    assert (said is None) if problem is None else (said is not None and problem in said)
    assert found.runs_on(driver, [gpu(catalog, board)]) == (problem is None)


def test_an_image_of_another_architecture(catalog: Catalog) -> None:
    found, driver = catalog.image("pytorch-2.14.1-cuda13.2"), catalog.branch(580)
    assert found is not None and driver is not None
    assert found.runs_on(driver, [], "x86_64") and not found.runs_on(driver, [], "aarch64")


def test_an_image_is_found_by_reference_and_pulled_by_digest(catalog: Catalog) -> None:
    found = catalog.image("docker.io/pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime")
    assert found is not None and found.name == "pytorch-2.14.1-cuda13.2"
    assert found.pinned == (f"{found.reference}@{found.digest}" if found.digest else found.reference)
