"""The kit for a machine with a GPU and no network: a Debian root file system with Docker, and a signed repository of the container toolkit.

    python -m e2e kit FOLDER --toolkit DEBS

DEBS is a folder of NVIDIA's four toolkit packages of one version, as their repository has them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from e2e.lab import cgroup, keys, machine, network, rootfs
from e2e.lab.command import remove, run, say
from e2e.lab.errors import LabError
from e2e.lab.mirror import read_mirror
from e2e.lab.repository import Repository, index

from .paths import REPOSITORIES, REPOSITORY, REPOSITORY_PORT, ROOT_ARCHIVE

SUITE = "trixie"
_PACKAGES = (*rootfs.PACKAGES, "docker.io", "docker-cli", "docker-registry", "iptables")
# Hardware names for people, and helpers of Docker that a host does not run: a fifth of the archive.
_LEFT_OUT = (
    *rootfs.LEFT_OUT,
    "/usr/lib/udev/hwdb*",
    "/usr/bin/ctr",
    "/usr/bin/containerd-stress",
    "/usr/lib/x86_64-linux-gnu/gconv/*",
)
_TOOLKIT = "libnvidia-container"


def make_kit(folder: Path, toolkit: Path | None) -> None:
    """Makes the kit in a folder that is new or holds an older kit. LabError when something that it needs is missing."""
    machine.check_root()
    machine.check_packages()
    debs = sorted(toolkit.glob("*.deb")) if toolkit else []
    if toolkit and not debs:
        raise LabError(f"{toolkit} holds no .deb: name the folder of NVIDIA's container toolkit packages")
    folder.mkdir(parents=True, exist_ok=True)
    _make_root(folder / ROOT_ARCHIVE)
    if debs:
        _make_repository(folder, debs)


def _make_root(target: Path) -> None:
    say("building the root file system of the host (about two minutes)")
    mirror = read_mirror()
    options = ["force-unsafe-io", *(f"path-exclude={path}" for path in _LEFT_OUT)]
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        settings, root = Path(scratch, "apt.conf"), Path(scratch, "root")
        settings.write_text(mirror.apt_settings)
        run(
            ["mmdebstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", f"--aptopt={settings}",
             *(f"--dpkgopt={option}" for option in options), SUITE, str(root), *rootfs.debian_sources(SUITE, mirror)],
            timeout_s=900,
        )  # fmt: skip
        # nothing of this machine's package sources goes along: the host has no network
        for path in ("etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap", "etc/hostname", "etc/resolv.conf"):
            (root / path).unlink(missing_ok=True)
        for key in (root / "etc/ssh").glob("ssh_host_*"):
            key.unlink()
        remove(root / "var/lib/apt/lists")
        run(["tar", "--create", "--xz", "--numeric-owner", "--xattrs", "--exclude=./dev/*", "-C", str(root), "-f", str(target), "."],
            timeout_s=900)  # fmt: skip


def _make_repository(folder: Path, debs: list[Path]) -> None:
    say(f"signing a repository of {len(debs)} packages")
    remove(folder / REPOSITORY)
    served = folder / REPOSITORY / _TOOLKIT
    flat = served / "stable" / "deb" / "amd64"
    flat.mkdir(parents=True)
    for deb in debs:
        shutil.copy(deb, flat)
    group = cgroup.make(network.this_network().cgroup / "signing")
    try:
        fingerprint = keys.make_key("toolkit", group)
        keys.export("toolkit", group, served / "gpgkey")
        index(flat, "toolkit", "libnvidia-container", group)
    finally:
        cgroup.remove(group)
        cgroup.remove_if_empty(group.parent)
    address = f"http://127.0.0.1:{REPOSITORY_PORT}/{_TOOLKIT}"
    described = {"nvidia-toolkit": asdict(Repository(f"{address}/stable/deb/amd64/", f"{address}/gpgkey", fingerprint))}
    (folder / REPOSITORIES).write_text(json.dumps(described, indent=1))
