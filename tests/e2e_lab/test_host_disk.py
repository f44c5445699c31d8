from __future__ import annotations

from pathlib import Path

import pytest

from e2e.lab import rootfs
from e2e.lab.identity import put
from e2e.lab.mirror import Mirror


def test_folders_of_an_upper_layer_look_like_those_that_they_hide(tmp_path: Path) -> None:
    root, upper = tmp_path / "root", tmp_path / "upper"
    (root / "home/admin/.ssh").mkdir(parents=True)
    (root / "home/admin/.ssh").chmod(0o700)
    upper.mkdir()
    put(upper, root, "home/admin/.ssh/authorized_keys", "key\n", mode=0o600)
    put(upper, root, "home/admin/.profile", "")
    assert (upper / "home/admin/.ssh").stat().st_mode & 0o7777 == 0o700
    assert (upper / "home/admin/.ssh/authorized_keys").stat().st_mode & 0o7777 == 0o600
    assert (upper / "home/admin").stat().st_mode == (root / "home/admin").stat().st_mode


def test_a_root_file_system_is_made_anew_when_the_simulated_kernel_or_the_way_to_the_mirror_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rootfs, "_STANDINS", tmp_path)
    boot = tmp_path / "rootfs" / "boot"
    boot.parent.mkdir()
    digests = []
    mirror = Mirror("http://mirror.example/debian", "http://mirror.example/debian-security", "", ())

    def remember() -> None:
        digests.append(rootfs.digest(*rootfs.contents(mirror)))

    remember()
    boot.write_text("true\n")
    remember()
    boot.chmod(0o755)
    remember()
    (tmp_path / "rootfs.sh").write_text("true\n")
    remember()
    mirror = Mirror(mirror.debian, mirror.security, 'Acquire::Retries "2";\n', ())
    remember()
    assert len(set(digests)) == len(digests)
    remember()
    assert digests[-1] == digests[-2]
