"""The words themselves, grub's file as a shell reads it, and what is told to grubby."""

from __future__ import annotations

import subprocess

import pytest

from bringup.command_line import UNIFIED, grub_text, keeps_v1, workarounds

OLD = "systemd.unified_cgroup_hierarchy=0"
WORDS = [
    ("ro quiet", [], []), (f"ro {OLD}", [OLD], [OLD]), ("systemd.unified_cgroup_hierarchy=no", 1, 1), (UNIFIED, [], []),
    ("systemd.legacy_systemd_cgroup_controller", 1, 1), ("cgroup_enable=memory cgroup_enable=cpuset", [], ["cgroup_enable=memory"]),
    ("swapaccount=1 noswapaccount=1", [], ["swapaccount=1"]), ("cgroup_no_v1=all", [], []), (f"x{OLD}", [], []),
]  # fmt: skip


@pytest.mark.parametrize(("line", "v1", "all_"), WORDS)
def test_which_words_are_old_workarounds(line: str, v1: list[str] | int, all_: list[str] | int) -> None:
    words = line.split()
    assert keeps_v1(words) == (words if v1 == 1 else v1)
    assert workarounds(words) == (words if all_ == 1 else all_)


GRUB = [
    ("quiet splash", "quiet splash"), ("", ""), (f"quiet {OLD}", "quiet"), (f"{OLD} swapaccount=1 {OLD}", ""),
    (f"x{OLD} {OLD}x a=*", f"x{OLD} {OLD}x a=*"), ("dyndbg=\\\"file a.c +p\\\" $HOME", 'dyndbg="file a.c +p" /root'),
]  # fmt: skip


@pytest.mark.parametrize(("had", "left"), GRUB)
def test_grubs_file_takes_words_off_and_adds_ours_and_nothing_else_changes(had: str, left: str) -> None:
    text = grub_text([UNIFIED], [OLD, "swapaccount=1"])
    script = f'HOME=/root GRUB_TIMEOUT=5; GRUB_CMDLINE_LINUX="{had}" GRUB_CMDLINE_LINUX_DEFAULT="{had}"\n{text}'
    script += 'printf "%s\\n" "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT" "$GRUB_TIMEOUT" "$out"'
    done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines() == [f"{left} {UNIFIED}", left, "5", ""] and done.stderr == ""
