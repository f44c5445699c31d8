"""The probe that counts compiled files and times an import, on a package that is made for it."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bringup import probes

NAMES = ("heavy/__init__.py", "heavy/one.py", "heavy/two.py")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "heavy").mkdir()
    (tmp_path / NAMES[0]).write_text("from heavy import one, two\n")
    for name in NAMES[1:]:
        (tmp_path / name).write_text("x = 1\n")
    return tmp_path


def probe(folder: Path, *arguments: str) -> dict[str, Any]:
    """What it prints of the package's own three modules; those of the standard library are taken off."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("PYTHONPYCACHEPREFIX", None)
    run = subprocess.run(
        [sys.executable, "-", *arguments], input=probes.source("import_time"), text=True, capture_output=True, check=True, env=environment,
        timeout=60,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def compiled(package: Path) -> list[str]:
    return sorted(path.name.split(".")[0] for path in package.rglob("*.pyc"))


def test_missing_files_are_counted_and_none_is_written(package: Path) -> None:
    found = probe(package, "--module", "heavy", "--runs", "2")
    assert found["missing"] >= 3 and found["failed"] is None and len(found["import_s"]) == len(found["interpreter_s"]) == 2
    assert found["valid"] + found["stale"] + found["missing"] == found["modules"]
    assert compiled(package) == []


def test_valid_and_stale_files_are_told_apart(package: Path) -> None:
    base = probe(package, "--module", "heavy", "--runs", "1")
    for name in NAMES:
        py_compile.compile(str(package / name), doraise=True)
    assert probe(package, "--module", "heavy", "--runs", "1")["valid"] == base["valid"] + 3
    os.utime(package / NAMES[1], (1, 1))  # as an image's layers do that set all times anew
    found = probe(package, "--module", "heavy", "--runs", "1")
    assert (found["valid"], found["stale"]) == (base["valid"] + 2, base["stale"] + 1)


def test_a_file_of_another_python_is_stale(package: Path) -> None:
    base = probe(package, "--module", "heavy", "--runs", "1")
    path = Path(py_compile.compile(str(package / NAMES[1]), doraise=True) or "")
    path.write_bytes(b"\x00\x00\x0d\x0a" + path.read_bytes()[4:])
    assert probe(package, "--module", "heavy", "--runs", "1")["stale"] == base["stale"] + 1


def test_compiled_files_stay_valid_when_times_change(package: Path) -> None:
    found = probe(package, "--module", "heavy", "--runs", "1", "--compile", "--cache", str(package / "cache"))
    assert (found["missing"], found["stale"], found["not_compiled"]) == (0, 0, 0)
    os.utime(package / NAMES[1], (1, 1))
    assert probe(package, "--module", "heavy", "--runs", "1", "--cache", str(package / "cache"))["missing"] == 0
    assert not list((package / "heavy").rglob("*.pyc"))  # beside the sources nothing was written


def test_what_cannot_be_imported_is_said(package: Path) -> None:
    assert "No module named 'nothing_of_that_name'" in probe(package, "--module", "nothing_of_that_name")["failed"]
