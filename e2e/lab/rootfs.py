"""Cached Debian root file systems that look like the disk of a fresh cloud VM: systemd, sshd, sudo, and not much else (no Python).

Two steps, each cached under a hash of what goes into it: Debian's packages (a minute, CACHE/rootfs/debian12-HASH.tar.zst), and on top
of them the settings of a cloud image and the simulated kernel (seconds, CACHE/rootfs/debian12-HASH/), so that work on the stand-ins does
not wait for the packages.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import cgroup, el, rpm
from .command import remove, run, say
from .distros import Distro, find_distro
from .errors import LabError
from .mirror import Mirror, read_mirror
from .network import this_network
from .paths import CACHE

USER = "admin"
PASSWORD = "lab $ecret's"  # noqa: S105 - with a space, a dollar and a quote, so that careless quoting shows
"""Of the user on every host; some hosts want it for sudo."""

PACKAGES = (
    "ca-certificates", "dbus", "iproute2", "kmod", "libpam-systemd", "netbase", "openssh-server", "procps",
    "sudo", "systemd", "systemd-sysv", "udev",
)  # fmt: skip
LEFT_OUT = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")
# Debian's Docker, unpacked where nothing looks for it
_HIDE_DOCKER = (
    f'chroot "$1" sh -c "mkdir -p /{el.HIDDEN}/docker && cd /tmp && apt-get download {" ".join(el.DOCKER_DEBS)} && '
    f'for file in *.deb; do dpkg-deb --extract \\$file /{el.HIDDEN}/docker; done; rm *.deb"'
)
_STANDINS = Path(__file__).parent / "standins"
_BUILD_TIMEOUT_S = 900
_UNUSED_DAYS = 7


def root_file_system(distro: str) -> Path:
    """The folder that holds the root file system, built when it is not there yet; never write to it: hosts lie on top of it.

    LabError for a distribution that the lab does not know, and when Debian's packages cannot be had.
    """
    mirror = read_mirror()
    wanted = find_distro(distro)
    # dressed ones may be made of the same packages as Debian
    base = distro if wanted.packages or wanted.os_release is None else _base(wanted)
    folder = CACHE / "rootfs"
    folder.mkdir(parents=True, exist_ok=True)
    command = _packages_command(wanted, mirror)
    packages = folder / f"{base}-{digest(repr((command, mirror.apt_settings)).encode())}.tar.zst"
    root = folder / f"{distro}-{digest(packages.name.encode(), repr(wanted).encode(), *contents(mirror))}"
    with _locked(folder / f"{base}.lock"):
        if not packages.exists():
            _install_packages(base, command, mirror, packages)
        if not root.exists():
            say(f"{distro}: unpacking its root file system")
            scratch = folder / f".{root.name}.new"
            remove(scratch)
            scratch.mkdir()
            run(
                ["tar", "--extract", "--zstd", "--numeric-owner", "--xattrs-include=*", "-f", str(packages), "-C", str(scratch)],
                timeout_s=300,
            )
            _dress(scratch, wanted, mirror)
            scratch.rename(root)
            _forget_unused(folder, distro)
        os.utime(root)
        os.utime(packages)
    return root


def _base(wanted: Distro) -> str:
    return {"bookworm": "debian12", "trixie": "debian13"}[wanted.suite]


def _packages_command(distro: Distro, mirror: Mirror) -> list[str]:
    suite = distro.suite
    # no host of the lab ever loses its page cache, so dpkg need not wait for the disk
    options = ["force-unsafe-io", *(f"path-exclude={path}" for path in LEFT_OUT), "path-include=/usr/share/doc/*/copyright"]
    packages = ",".join((*PACKAGES, *distro.packages))
    hooks = [f"--customize-hook={_HIDE_DOCKER}"] if distro.family == "el" else []
    return [
        "mmdebstrap", "--variant=minbase", f"--include={packages}", *hooks, *(f"--dpkgopt={option}" for option in options),
        suite, "-", *debian_sources(suite, mirror),
    ]  # fmt: skip


def debian_sources(suite: str, mirror: Mirror, components: str = "main") -> list[str]:
    return [
        f"deb {mirror.debian} {suite} {components}",
        f"deb {mirror.debian} {suite}-updates {components}",
        f"deb {mirror.security} {suite}-security {components}",
    ]


def _install_packages(distro: str, command: list[str], mirror: Mirror, target: Path) -> None:
    say(f"{distro}: building its root file system from Debian's packages (about a minute; once)")
    scratch = target.with_name(f".{target.name}.new")
    log = target.with_name(f"{distro}.log")
    settings = target.with_name(f"{distro}.apt.conf")
    settings.write_text(mirror.apt_settings)
    temporary = target.with_name(f".{distro}.tmp")
    remove(temporary)
    temporary.mkdir()
    command[1:1] = [f"--aptopt={settings}"] if mirror.apt_settings else []
    # In a mount namespace of its own and in the lab's control group: nothing of it stays when it is killed, and `down` finds it.
    script = 'set -o pipefail; unshare --mount --propagation private "$@" | zstd -q -3 -T0 -f -o "$0"'
    group = cgroup.make(this_network().cgroup / f"build-{distro}")
    try:
        with log.open("w") as output:
            building = subprocess.Popen(
                cgroup.entering(group, ["bash", "-c", script, str(scratch), *command]),
                stdin=subprocess.DEVNULL, stderr=output, env={**os.environ, "TMPDIR": str(temporary), "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
            _report_until_done(building, distro, log)
    finally:
        cgroup.remove(group)
        cgroup.remove_if_empty(group.parent)
        remove(temporary)
    if building.returncode:
        words = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("E:")][-1:] or [
            "it said nothing"
        ]
        scratch.unlink(missing_ok=True)
        raise LabError(f"the root file system of {distro} could not be built ({words[0].removeprefix('E: ')}): see {log}")
    scratch.rename(target)


def _report_until_done(building: subprocess.Popen[bytes], distro: str, log: Path) -> None:
    began = time.monotonic()
    told = ""
    while building.poll() is None:
        if time.monotonic() - began > _BUILD_TIMEOUT_S:
            raise LabError(f"the root file system of {distro} was not built within {_BUILD_TIMEOUT_S} s: see {log}")
        steps = [line[3:] for line in log.read_text(errors="replace").splitlines() if line.startswith("I: ")]
        if steps and steps[-1] != told:
            told = steps[-1]
            say(f"{distro}: {told} ({time.monotonic() - began:.0f} s)")
        time.sleep(0.5)


def _dress(root: Path, distro: Distro, mirror: Mirror) -> None:
    """What a provider does to Debian's packages: a user, a way in, package sources; then the simulated kernel."""
    files = {
        "etc/machine-id": "",
        "etc/apt/sources.list.d/debian.sources": _deb822(distro.suite, mirror),
        "etc/apt/apt.conf.d/90-machine": mirror.apt_settings,
        "etc/ssh/sshd_config.d/50-cloud.conf": "PasswordAuthentication no\nMaxStartups 100:30:200\n",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    for leftover in ("etc/apt/sources.list", "etc/hostname", "etc/resolv.conf"):
        (root / leftover).unlink(missing_ok=True)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    # A machine in a container has no terminal, and its address is set from outside.
    for unit in ("console-getty.service", "getty@tty1.service", "systemd-networkd.service", "systemd-networkd.socket"):
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
    for certificate in mirror.certificates:
        shutil.copy(certificate, root / "usr/local/share/ca-certificates")
    run(["chroot", str(root), "update-ca-certificates"])
    run(["chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", "--groups", "sudo", USER])
    run(["chroot", str(root), "chpasswd"], stdin=f"{USER}:{PASSWORD}\n")
    run(["chroot", str(root), "install", "-d", "-m", "700", "-o", USER, "-g", USER, f"/home/{USER}/.ssh"])
    if distro.os_release is not None:
        (root / "etc/os-release").unlink()
        (root / "etc/os-release").write_text(distro.os_release)
    if (_STANDINS / "rootfs").is_dir():
        run(["cp", "-a", "--no-preserve=ownership", f"{_STANDINS / 'rootfs'}/.", str(root)])
    if (_STANDINS / "rootfs.sh").exists():
        run(["sh", str(_STANDINS / "rootfs.sh"), str(root)])
    if distro.family == "el":
        el.dress(root)


def _deb822(suite: str, mirror: Mirror) -> str:
    text = ""
    for address, suites in ((mirror.debian, f"{suite} {suite}-updates"), (mirror.security, f"{suite}-security")):
        text += (
            f"Types: deb\nURIs: {address}\nSuites: {suites}\nComponents: main contrib non-free non-free-firmware\n"
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        )
    return text


def contents(mirror: Mirror) -> Iterator[bytes]:
    """All that decides what _dress() makes."""
    yield from (Path(each).read_bytes() for each in (__file__, el.__file__, rpm.__file__))
    yield repr(mirror).encode()
    for path in mirror.certificates:
        yield path.read_bytes()
    for path in sorted([*(_STANDINS / "rootfs").rglob("*"), _STANDINS / "rootfs.sh"]):
        yield str(path.relative_to(_STANDINS)).encode()
        if path.is_symlink():
            yield str(path.readlink()).encode()
        elif path.is_file():
            yield oct(path.stat().st_mode).encode() + path.read_bytes()


def digest(*parts: bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:12]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Two labs may be started at once: the second waits for what the first builds."""
    deadline = time.monotonic() + _BUILD_TIMEOUT_S + 60
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"another process has been building a root file system for too long: see who holds {path}"
                    ) from None
                time.sleep(0.5)
        yield


def _forget_unused(folder: Path, distro: str) -> None:
    """Old builds go when no lab has asked for them for a week."""
    for path in folder.glob(f"{distro}-*"):
        if time.time() - path.stat().st_mtime > _UNUSED_DAYS * 86400:
            remove(path)
