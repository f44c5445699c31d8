"""The check finds each fault that is put into a copy of the catalog, and nothing in the catalog itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

from bringup.catalog import Catalog
from bringup.catalog.check import check

TODAY = date(2026, 12, 1)
Break = Callable[[str, str, str], Catalog]


def lines(catalog: Catalog, level: str, today: date = TODAY) -> list[str]:
    return [finding.line for finding in check(catalog, today) if finding.level == level]


def test_the_catalog_has_no_errors(catalog: Catalog) -> None:
    assert lines(catalog, "error") == []


def test_old_data_is_a_warning_and_no_error(catalog: Catalog) -> None:
    oldest = min(catalog.as_of().values())
    assert not any("look its sources up" in line for line in lines(catalog, "warning", oldest + timedelta(days=120)))
    later = lines(catalog, "warning", oldest + timedelta(days=121))
    assert "warning: gpus.yml: is of 2026-11-30, 121 days ago: look its sources up again" in later
    assert lines(catalog, "error", oldest + timedelta(days=121)) == []


def test_data_of_tomorrow_is_an_error(catalog: Catalog) -> None:
    assert "error: gpus.yml: is of 2026-11-30, which is in the future" in lines(catalog, "error", TODAY - timedelta(days=2))


FAULTS = [
    (file, fault["old"], fault["new"], fault["said"])
    for file, faults in yaml.safe_load((Path(__file__).parent / "faults.yml").read_text()).items()
    for fault in faults
]


@pytest.mark.parametrize(("file", "old", "new", "said"), FAULTS, ids=[said for *_, said in FAULTS])
def test_finds_the_fault(broken: Break, file: str, old: str, new: str, said: str) -> None:
    found = lines(broken(file, old, new), "error")
    assert any(said in line for line in found), found


def test_a_key_without_fingerprint_is_a_warning(broken: Break) -> None:
    fingerprint = "EB693B3035CD5710E231E123A4B469963BF863CC table github"
    catalog = broken("repositories.yml", fingerprint, "null")
    assert lines(catalog, "error") == []
    assert any("key 3bf863cc.pub has no known fingerprint" in line for line in lines(catalog, "warning"))


def test_a_supported_branch_without_floor_and_one_past_its_end_are_warnings(broken: Break) -> None:
    catalog = broken("drivers.yml", '- {branch: 620, version: "620.70.06", sources: [redist]}\n', "")
    found = lines(catalog, "warning", date(2027, 5, 1))
    assert "warning: drivers.yml: branch 620 is supported and has no security floor" in found
    assert "warning: drivers.yml: branch 595 ended on 2027-03-31 and is still called supported" in found


def test_a_day_without_any_long_term_branch_is_an_error(catalog: Catalog) -> None:
    assert any("has no long-term branch" in line for line in lines(catalog, "error", date(2030, 1, 1)))
