"""The lock file among several runs: one writer at a time, nothing lost, never half a file."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bringup.errors import HostError, UserError
from bringup.images_lock import Locked
from operations import images_lock
from operations.images_lock import read_lock, remember

A = "sha256:" + "a" * 64
FOUND = Locked(A, "2026-12-01", {})
# writes five tags of its own, one after the other
RUN = """
import sys
from bringup.images_lock import Locked
from operations.images_lock import remember
for tag in range(5):
    remember(None, f"registry.example/{sys.argv[2]}:{tag}", Locked("sha256:" + "a" * 64, "2026-12-01", {}), sys.argv[1])
"""


def started(path: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", RUN, str(path), name], cwd=Path(__file__).parents[2])


def test_runs_at_the_same_time_lose_nothing_of_each_other(tmp_path: Path) -> None:
    path = tmp_path / "images.lock.yml"
    runs = [started(path, f"team-{number}") for number in range(3)]
    assert [run.wait(timeout=60) for run in runs] == [0] * 3
    assert len(read_lock(str(path))) == 15 and [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_run_that_is_killed_leaves_a_whole_file_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "images.lock.yml"
    run = started(path, "team")
    while not path.exists() and run.poll() is None:
        pass
    run.kill()
    run.wait(timeout=10)
    (tmp_path / f".{path.name}.new").write_text("schema: 1\nimages: {half")  # what a kill in the middle leaves
    remember(None, "registry.example/other:1", FOUND, str(path))  # type: ignore[arg-type]
    assert read_lock(str(path))["registry.example/other:1"] == FOUND and [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_run_that_holds_it_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_lock, "WAIT_S", 0.1)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(HostError, match=r"images.lock.yml was not free for 0 s: another run"):
        remember(None, "registry.example/a:1", FOUND, str(tmp_path / "images.lock.yml"))  # type: ignore[arg-type]
    os.close(folder)


@pytest.mark.parametrize("place", ["file/images.lock.yml", "folder"])
def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(HostError, match=r"cannot be (written|read)"):
        remember(None, "registry.example/a:1", FOUND, str(tmp_path / place))  # type: ignore[arg-type]


@pytest.mark.parametrize(("place", "says"), [("", "Is a directory"), ("a\0b", "null"), ("latin-1.yml", "it is no UTF-8 text")])
def test_what_cannot_be_read_is_one_sentence(tmp_path: Path, place: str, says: str) -> None:
    (tmp_path / "latin-1.yml").write_bytes(b"schema: 1 # \xe9\n")
    with pytest.raises(UserError, match=says):
        read_lock(f"{tmp_path}/{place}")
