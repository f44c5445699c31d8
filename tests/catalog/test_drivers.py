"""Support of branches over time, module kinds, security floors, images on drivers and GPUs."""

from __future__ import annotations

from datetime import date

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


def test_an_image_is_found_by_reference_and_pulled_by_digest(catalog: Catalog) -> None:
    found = catalog.image("docker.io/pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime")
    assert found is not None and found.name == "pytorch-2.14.1-cuda13.2"
    assert found.pinned == (f"{found.reference}@{found.digest}" if found.digest else found.reference)
