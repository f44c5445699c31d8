"""The lab's package repositories: signed, in the layout of NVIDIA's two (driver per distribution, container toolkit for all of them)."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import cgroup, packages, services
from .cached import move_into_place
from .command import run, say
from .network import Network
from .paths import CACHE

PORT = 8082
PRODUCTS = ("debian12", "debian13")
SERVICE = "repository"
_KEYS = {
    "driver": "Stand-in for cudatools <driver@example.invalid>",
    "toolkit": "Stand-in for NVIDIA CORPORATION <toolkit@example.invalid>",
}
_DRIVER_KEY = "3bf863cc.pub"  # the file's name at NVIDIA's


@dataclass(frozen=True)
class Repository:
    """As inventories/lab.py hands it to the product. url and key_url hold {distro}, for a product such as debian12."""

    url: str
    key_url: str
    fingerprint: str


def address(network: Network) -> str:
    return f"http://{network.gateway}:{PORT}"


def build_repositories(network: Network) -> Path:
    """The folder to be served, built when its sources or what it is built for have changed."""
    kernel = os.uname().release
    # gpg leaves an agent running: in this group it ends with the work, or with the lab when this process is killed
    group = cgroup.make(network.cgroup / "signing")
    try:
        keys = [_make_key(name, group) for name in _KEYS]
        parts = [packages.sources_digest(), Path(__file__).read_text(), kernel, address(network), *keys]
        root = CACHE / "repository" / hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
        if not root.exists():
            say("building the stand-in packages and their repository")
            with tempfile.TemporaryDirectory(prefix=".new-", dir=_made(root.parent)) as scratch:
                _fill(Path(scratch, "root"), network, kernel, group)
                move_into_place(Path(scratch, "root"), root)
    finally:
        cgroup.remove(group)
    return root


def repositories(network: Network) -> dict[str, Repository]:
    """By the product's names, once build_repositories() has made their keys."""
    driver, toolkit = f"{address(network)}/cuda/repos/{{distro}}/x86_64/", f"{address(network)}/libnvidia-container"
    return {
        "nvidia-driver": Repository(driver, f"{driver}{_DRIVER_KEY}", _fingerprint("driver")),
        "nvidia-toolkit": Repository(f"{toolkit}/stable/deb/amd64/", f"{toolkit}/gpgkey", _fingerprint("toolkit")),
    }


def serve(network: Network, root: Path) -> None:
    """Serves the repositories to the lab's hosts until the lab goes down."""
    command = [sys.executable, "-m", "http.server", str(PORT), "--bind", network.gateway, "--directory", str(root)]
    services.start(network, SERVICE, PORT, command)


def _fill(root: Path, network: Network, kernel: str, group: Path) -> None:
    common, toolkit = root / "common", root / "libnvidia-container"
    for driver in packages.DRIVERS:
        packages.build_driver(driver, common)
    packages.build_headers(common, kernel)
    binary_key = root / "key.gpg"
    _gpg("driver", group, "--output", str(binary_key), "--export")
    for product in PRODUCTS:
        folder = root / "cuda" / "repos" / product / "x86_64"
        shutil.copytree(common, folder)
        packages.build_keyring(folder, binary_key, address(network), product)
        _gpg("driver", group, "--armor", "--output", str(folder / _DRIVER_KEY), "--export")
        _index(folder, "driver", "NVIDIA CUDA", group)
    shutil.rmtree(common)
    binary_key.unlink()
    flat = toolkit / "stable" / "deb" / "amd64"
    for version in packages.TOOLKITS:
        packages.build_toolkit(version, flat)
    _gpg("toolkit", group, "--armor", "--output", str(toolkit / "gpgkey"), "--export")
    line = f"deb {address(network)}/libnvidia-container/stable/deb/$(ARCH) /\n"
    (flat.parent / "nvidia-container-toolkit.list").write_text(line)
    _index(flat, "toolkit", "libnvidia-container", group)


def _index(folder: Path, key: str, label: str, group: Path) -> None:
    """Makes a folder of packages a flat, signed repository."""
    (folder / "Packages").write_text(run(["env", "-C", str(folder), "apt-ftparchive", "packages", "."]))
    run(["gzip", "--keep", "--no-name", str(folder / "Packages")])
    names = {"Origin": "NVIDIA", "Label": label, "Description": "stand-in of a test lab", "Architectures": "amd64"}
    options = [word for name, text in names.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={text}")]
    (folder / "Release").write_text(run(["env", "-C", str(folder), "apt-ftparchive", *options, "release", "."]))
    _gpg(key, group, "--output", str(folder / "InRelease"), "--clearsign", str(folder / "Release"))
    _gpg(key, group, "--armor", "--output", str(folder / "Release.gpg"), "--detach-sign", str(folder / "Release"))


def _make_key(name: str, group: Path) -> str:
    """The fingerprint of a signing key, made once and kept in CACHE: repositories that were built stay valid."""
    home = CACHE / "keys" / name
    if not home.exists():
        with tempfile.TemporaryDirectory(prefix=".new-", dir=_made(home.parent)) as scratch:
            run(
                cgroup.entering(
                    group, [*_gpg_command(Path(scratch)), "--quick-generate-key", _KEYS[name], "ed25519", "sign", "never"]
                )
            )
            listing = run(cgroup.entering(group, [*_gpg_command(Path(scratch)), "--with-colons", "--list-keys"]))
            lines = [line.split(":") for line in listing.splitlines()]
            Path(scratch, "fingerprint").write_text(next(fields[9] for fields in lines if fields[0] == "fpr"))
            shutil.copytree(scratch, f"{scratch}.key", ignore=shutil.ignore_patterns("S.*"))
            move_into_place(Path(f"{scratch}.key"), home)
    return _fingerprint(name)


def _fingerprint(name: str) -> str:
    return (CACHE / "keys" / name / "fingerprint").read_text()


def _gpg(key: str, group: Path, *arguments: str) -> None:
    run(cgroup.entering(group, [*_gpg_command(CACHE / "keys" / key), *arguments]))


def _gpg_command(home: Path) -> list[str]:
    return ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
