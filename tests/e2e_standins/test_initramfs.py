"""The stand-in initramfs tools, run here by their names; they write real cpio archives."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.lab.packages import STANDINS

_TOOL = STANDINS / "rootfs/usr/lib/simulated-gpu/initramfs"
_CONF = "etc/modprobe.d/no-nouveau.conf"


@pytest.fixture
def call(tmp_path: Path) -> object:
    """Runs the tool by a name, with /boot and /etc/modprobe.d in tmp_path."""
    program = tmp_path / "program"
    program.write_text(
        _TOOL.read_text()
        .replace("/boot/", f"{tmp_path}/boot/")
        .replace("/usr/sbin/update-initramfs", f"{tmp_path}/update-initramfs")
        .replace("glob '/etc/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf'", "glob('etc/modprobe.d/*.conf')")
        .replace("$files{substr $path, 1}", "$files{$path}")
    )
    program.chmod(0o755)
    (tmp_path / "boot").mkdir()
    (tmp_path / "etc/modprobe.d").mkdir(parents=True)
    for name in ("update-initramfs", "lsinitramfs", "unmkinitramfs", "initramfs"):
        (tmp_path / name).symlink_to(program)

    def run(name: str, *arguments: str) -> str:
        done = subprocess.run([tmp_path / name, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout

    return run


def test_nouveau_stays_in_until_the_image_is_made_anew(call: object, tmp_path: Path) -> None:
    assert callable(call)
    assert call("initramfs") == "yes\n"
    (tmp_path / _CONF).write_text("blacklist nouveau\n")
    assert call("initramfs") == "yes\n"
    (image,) = (tmp_path / "boot").iterdir()
    assert "modprobe.d" not in call("lsinitramfs", str(image))
    assert call("update-initramfs", "-u", "-k", "all") == f"update-initramfs: Generating {image}\n"
    assert call("initramfs") == "no\n"
    assert {_CONF, "init"} <= set(call("lsinitramfs", str(image)).splitlines())


def test_a_comment_in_modprobe_d_keeps_nothing_out(call: object, tmp_path: Path) -> None:
    assert callable(call)
    call("initramfs")
    (tmp_path / _CONF).write_text("# blacklist nouveau\nblacklist nouveau_other\n")
    call("update-initramfs", "-u")
    assert call("initramfs") == "yes\n"


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_the_archive_is_a_real_one(call: object, tmp_path: Path) -> None:
    assert callable(call)
    call("initramfs")
    (tmp_path / _CONF).write_text("blacklist nouveau\n")
    call("update-initramfs", "-u")
    (image,) = (tmp_path / "boot").iterdir()
    with image.open("rb") as archive:
        listed = subprocess.run(["cpio", "-t"], stdin=archive, capture_output=True, text=True, check=True).stdout.splitlines()
    assert listed == call("lsinitramfs", str(image)).splitlines()[1:]


def test_an_image_is_unpacked_as_it_was_packed(call: object, tmp_path: Path) -> None:
    assert callable(call)
    call("initramfs")
    (tmp_path / _CONF).write_text("blacklist nouveau\n")
    call("update-initramfs", "-u")
    (image,) = (tmp_path / "boot").iterdir()
    call("unmkinitramfs", str(image), "out")
    assert (tmp_path / "out" / _CONF).read_text() == "blacklist nouveau\n"
