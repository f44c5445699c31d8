"""The installed catalog, and copies of it that a test may break."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import bringup.catalog
from bringup.catalog import Catalog, load

Break = Callable[[str, str, str], Catalog]


@pytest.fixture
def catalog() -> Catalog:
    return load()


@pytest.fixture
def broken(tmp_path: Path) -> Break:
    """A copy of the catalog in which one text of one file is replaced by another."""

    def make(file: str, old: str, new: str) -> Catalog:
        for source in Path(bringup.catalog.__file__).parent.glob("*.yml"):
            shutil.copy(source, tmp_path)
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r} any more: the test must be written anew"
        (tmp_path / file).write_text(text.replace(old, new, 1), encoding="utf-8")
        return load(tmp_path)

    return make
