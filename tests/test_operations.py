"""The commands that operations send, run on this machine in a folder of the test's own, with fake tools: nothing is restated."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import gevent
import pytest
from pyinfra.api.operation import OperationMeta

from deploys import ending
from operations import apt, lock
from operations.files import write_bytes, write_file
from tests.shell import Shell

HOSTILE = "a b; $(touch x) `touch x` 'touch x' \"touch x\" \\ \n| touch x & > x"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    assert not (tmp_path / "x").exists(), "a value was run as code"


def test_the_reason_that_is_said_of_a_fault_that_stayed_is_apts_and_not_that_it_was_tried_again(shell: Shell) -> None:
    error = "E: Failed to fetch http://a/x.deb  503  Service Unavailable [IP: 1.2.3.4 80]"
    shell.tool("apt-get", f"echo 'Reading package lists...'; echo '{error}' >&2; exit 100")
    shell.tool("sleep")
    done = shell.run(apt.apt_get("update"))
    said = SimpleNamespace(stdout_lines=done.stdout.splitlines(), stderr_lines=done.stderr.splitlines())
    assert done.stdout.count("tried again in") == 3
    assert ending.last_words(cast("OperationMeta", said)) == error


def test_hostile_package_names_are_arguments_of_apt(shell: Shell) -> None:
    shell.tool("apt-get")
    assert shell.run(apt.apt_get("install", f"{HOSTILE}=1.0", "-o", "Dir=$HOME")).returncode == 0
    called = (shell.folder / "calls").read_text()
    assert called.startswith("apt-get[-q][-y]") and f"[install][{HOSTILE}=1.0][-o][Dir=$HOME]\n" in called
    assert "[Dpkg::Options::=--force-confold]" in called


@pytest.mark.parametrize("content", [b"", b"one\n", b"no end", b"\r\n\x00\xff\xfe", HOSTILE.encode(), b"x" * 100_000])
def test_a_file_is_written_byte_by_byte_whole_and_with_its_mode(shell: Shell, content: bytes) -> None:
    path = shell.folder / "new folder" / "a file's name; $(touch x)"
    done = shell.run(write_bytes(str(path), content, "640"))
    assert done.stderr == "" and path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o640 and path.parent.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_the_content_of_a_file_is_in_no_argument_list(shell: Shell) -> None:
    assert "secret" not in write_file(f"{shell.folder}/f", "secret").get_raw_value()


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_fails(shell: Shell) -> None:
    path = shell.folder / "f"
    path.write_text("old")
    shell.tool("base64", "exit 1")
    assert shell.run(write_file(str(path), "new")).returncode != 0
    assert path.read_text() == "old"


class TestLock:
    @pytest.fixture(autouse=True)
    def folder(self, shell: Shell) -> None:
        self.shell, self.path = shell, shell.folder / "lock"

    def run(self, script: str, owner: str = "me host/1/2") -> subprocess.CompletedProcess[str]:
        return self.shell.run(script.replace(lock.FOLDER, str(self.path)), owner)

    def test_of_many_at_once_one_gets_it_and_the_others_are_told_who(self) -> None:
        with ThreadPoolExecutor(8) as pool:
            said = [each.stdout.strip() for each in pool.map(lambda at: self.run(lock.TAKE, f"run-{at} host/1/2"), range(8))]
        assert said.count("taken") == 1
        owner = (self.path / "owner").read_text().strip()
        assert {each.partition(" ")[2] for each in said if each != "taken"} <= {owner, ""}  # "": before its owner was written

    def test_only_its_owner_gives_it_back(self) -> None:
        self.run(lock.TAKE)
        assert self.run(lock.RELEASE, "other host/1/3").returncode != 0 and self.path.exists()
        assert self.run(lock.RELEASE).returncode == 0 and not self.path.exists()

    def test_a_stale_lock_is_broken_only_while_it_is_still_the_same(self) -> None:
        self.run(lock.TAKE)
        self.run(lock.BREAK, "someone else")
        assert self.path.exists()
        self.run(lock.BREAK)
        assert list(self.shell.folder.glob("lock*")) == []

    def test_where_it_cannot_be_made_the_reason_is_said_and_no_holder_is_made_up(self) -> None:
        self.path = self.shell.folder / "missing" / "lock"
        done = self.run(lock.TAKE)
        assert done.returncode != 0 and "cannot be made: is _sudo set?" in done.stdout


HERE = "ctl/abc123/"
STALE = [
    (7200, "run elsewhere/xyz/1", True), (7199, "run elsewhere/xyz/1", False), (0, f"run {HERE}1", False), (0, "run ctl/other/99", False),
    (5, f"run {HERE}{2**22 + 1}", True), (5, f"run {HERE}{2**80}", True), (5, f"run {HERE}x", False), (5, "", False), (9999, "", True),
    (5, "no machine", False),
]  # fmt: skip


@pytest.mark.parametrize(("age_s", "holder", "stale"), STALE)
def test_a_lock_is_stale_after_two_hours_or_when_its_process_on_this_machine_is_gone(
    monkeypatch: pytest.MonkeyPatch, age_s: int, holder: str, stale: bool
) -> None:
    monkeypatch.setattr(lock, "control_machine", lambda: f"{HERE}{os.getpid()}")
    assert lock.is_stale(age_s, holder) is stale


def test_this_very_process_is_alive() -> None:
    assert not lock.is_stale(5, lock.owner())


def test_a_holder_is_described_for_people() -> None:
    assert lock.describe("2026-11-30T214300Z-ab12 ctl-1/abc123/77") == "run 2026-11-30T214300Z-ab12 from ctl-1 (process 77)"
    assert lock.describe("") == "an owner that left no name"
    assert lock.describe("garbage") == "garbage"


def test_a_command_that_waits_for_locks_says_who_holds_them_and_gives_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []
    problems: list[str] = []
    holder = {"file": "/var/lib/dpkg/lock", "pid": 7, "command": "apt-get"}
    left = [[holder]] * 3 + [[]]
    host = SimpleNamespace(get_fact=lambda *_, **__: left.pop(0), log=lambda text, _: waits.append(text))
    monkeypatch.setattr(gevent, "sleep", lambda _: None)
    monkeypatch.setattr(apt, "report_problem", lambda _, text: problems.append(text))
    assert apt._wait_for_locks(None, host, 600) is True  # type: ignore[arg-type]
    assert waits == ["waiting: apt-get (process 7) holds /var/lib/dpkg/lock (600 s left)"] and problems == []
    left = [[holder]] * 50
    assert apt._wait_for_locks(None, host, 20) is False  # type: ignore[arg-type]
    assert problems == [
        "apt-get (process 7) holds /var/lib/dpkg/lock after 20 s of waiting: see what it does, or raise gpu_lock_timeout"
    ]
