"""The lab's package repositories: signed, in the layout of NVIDIA's two (driver per distribution, container toolkit for all of them).

What they hold and who has signed it is an Offer; a scenario may put another one in the place of the first while hosts look at it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from . import cgroup, keys, packages, services
from .cached import move_into_place
from .command import run, say
from .network import Network
from .paths import CACHE, STATE

PORT = 8082
PRODUCTS = ("debian12", "debian13")
SERVICE = "repository"
RULES = STATE / "repository-rules.json"
"""What goes wrong when the repositories are asked; see server.py."""

_SERVED = STATE / "repository"
_OFFER = STATE / "repository-offer.json"
_DRIVER_KEY = "3bf863cc.pub"  # the file's name at NVIDIA's


@dataclass(frozen=True)
class Offer:
    """What the driver repository holds. drivers: versions (all that the lab knows); signed_by: one of keys.py's names."""

    drivers: tuple[str, ...] = tuple(driver.version for driver in packages.DRIVERS)
    signed_by: str = "driver"
    headers: bool = True
    """Are the headers of the running kernel in it?"""


@dataclass(frozen=True)
class Repository:
    """As inventories/lab.py hands it to the product. url and key_url hold {distro}, for a product such as debian12."""

    url: str
    key_url: str
    fingerprint: str


def address(network: Network) -> str:
    return f"http://{network.gateway}:{PORT}"


def build_repositories(network: Network, offer: Offer | None = None) -> Path:
    """The folder to be served, built when its sources or what it is built for have changed. offer: None for the usual one."""
    offer = offer or Offer()
    kernel = os.uname().release
    # gpg leaves an agent running: in this group it ends with the work, or with the lab when this process is killed
    group = cgroup.make(network.cgroup / "signing")
    try:
        fingerprints = [keys.make_key(name, group) for name in dict.fromkeys((*keys.GOOD, offer.signed_by))]
        sources = [Path(__file__).read_text(), Path(keys.__file__).read_text(), packages.sources_digest()]
        parts = [*sources, kernel, address(network), *fingerprints, json.dumps(asdict(offer))]
        root = CACHE / "repository" / _digest(parts)
        if not root.exists():
            say("building the stand-in packages and their repository")
            with tempfile.TemporaryDirectory(prefix=".new-", dir=_made(root.parent)) as scratch:
                _fill(Path(scratch, "root"), network, kernel, offer, group)
                move_into_place(Path(scratch, "root"), root)
    finally:
        cgroup.remove(group)
    return root


def repositories(network: Network) -> dict[str, Repository]:
    """By the product's names, once build_repositories() has made their keys."""
    driver, toolkit = f"{address(network)}/cuda/repos/{{distro}}/x86_64/", f"{address(network)}/libnvidia-container"
    return {
        "nvidia-driver": Repository(driver, f"{driver}{_DRIVER_KEY}", keys.fingerprint("driver")),
        "nvidia-toolkit": Repository(f"{toolkit}/stable/deb/amd64/", f"{toolkit}/gpgkey", keys.fingerprint("toolkit")),
    }


def serve(network: Network, root: Path) -> None:
    """Serves the repositories to the lab's hosts until the lab goes down."""
    _show(root)
    server = Path(__file__).with_name("server.py")
    command = [sys.executable, "-S", str(server), network.gateway, str(PORT), str(_SERVED), str(RULES)]
    services.start(network, SERVICE, PORT, command)


def put_up(network: Network, offer: Offer) -> None:
    """Puts another offer in the place of what is served, from one moment to the next."""
    _show(build_repositories(network, offer))
    _OFFER.write_text(json.dumps(asdict(offer)))


def put_back(network: Network) -> None:
    """The usual offer, and nothing goes wrong."""
    for path in (RULES, RULES.with_suffix(".used")):
        path.unlink(missing_ok=True)
    if _OFFER.exists():
        _show(build_repositories(network))
        _OFFER.unlink()


def package_files(network: Network, version: str) -> Path:
    """The folder of the .deb files of one driver version."""
    return _driver_packages(next(driver for driver in packages.DRIVERS if driver.version == version))


def _show(root: Path) -> None:
    link = _SERVED.with_suffix(".new")
    link.unlink(missing_ok=True)
    link.symlink_to(root)
    link.rename(_SERVED)


def _fill(root: Path, network: Network, kernel: str, offer: Offer, group: Path) -> None:
    common, toolkit = root / "common", root / "libnvidia-container"
    common.mkdir(parents=True)
    for driver in packages.DRIVERS:
        if driver.version in offer.drivers:
            shutil.copytree(_driver_packages(driver), common, dirs_exist_ok=True, copy_function=os.link)
    if offer.headers:
        packages.build_headers(common, kernel)
    binary_key = root / "key.gpg"
    keys.export(offer.signed_by, group, binary_key, armor=False)
    for product in PRODUCTS:
        folder = root / "cuda" / "repos" / product / "x86_64"
        shutil.copytree(common, folder, copy_function=os.link)
        packages.build_keyring(folder, binary_key, address(network), product)
        keys.export(offer.signed_by, group, folder / _DRIVER_KEY)
        _index(folder, offer.signed_by, "NVIDIA CUDA", group)
    shutil.rmtree(common)
    binary_key.unlink()
    flat = toolkit / "stable" / "deb" / "amd64"
    for version in packages.TOOLKITS:
        packages.build_toolkit(version, flat)
    keys.export("toolkit", group, toolkit / "gpgkey")
    line = f"deb {address(network)}/libnvidia-container/stable/deb/$(ARCH) /\n"
    (flat.parent / "nvidia-container-toolkit.list").write_text(line)
    _index(flat, "toolkit", "libnvidia-container", group)
    _index(_made(root / "unsigned"), None, "somebody's", group)


def _driver_packages(driver: packages.DriverRelease) -> Path:
    """Kept apart from the repositories, which share them."""
    folder = CACHE / "packages" / f"{driver.version}-{packages.sources_digest()}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix=".new-", dir=_made(folder.parent)) as scratch:
            packages.build_driver(driver, Path(scratch, "packages"))
            move_into_place(Path(scratch, "packages"), folder)
    return folder


def _index(folder: Path, key: str | None, label: str, group: Path) -> None:
    """Makes a folder of packages a flat repository, signed if there is a key."""
    (folder / "Packages").write_text(run(["env", "-C", str(folder), "apt-ftparchive", "packages", "."]))
    run(["gzip", "--keep", "--no-name", str(folder / "Packages")])
    names = {"Origin": "NVIDIA", "Label": label, "Description": "stand-in of a test lab", "Architectures": "amd64"}
    options = [word for name, text in names.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={text}")]
    (folder / "Release").write_text(run(["env", "-C", str(folder), "apt-ftparchive", *options, "release", "."]))
    if key is not None:
        keys.sign(key, group, "--output", str(folder / "InRelease"), "--clearsign", str(folder / "Release"))
        keys.sign(key, group, "--armor", "--output", str(folder / "Release.gpg"), "--detach-sign", str(folder / "Release"))


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
