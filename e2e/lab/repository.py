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

from . import cgroup, distros, dressed, el, keys, packages, rpm, services
from .cached import move_into_place
from .command import run, say
from .distros import DISTROS, USUAL, Distro
from .dressed import build_ubuntu
from .network import Network
from .paths import CACHE, STATE

PORT = 8082
SERVICE = "repository"
RULES = STATE / "repository-rules.json"
"""What goes wrong when the repositories are asked; see server.py."""

_SERVED = STATE / "repository"
_USUAL = STATE / "repository-offer.json"
_DRIVER_KEY, _RPM_KEY = "3bf863cc.pub", "D42D0685.pub"  # the files' names at NVIDIA's
_TOOLKIT_REQUIRES = {
    "nvidia-container-toolkit": ("nvidia-container-toolkit-base", "libnvidia-container-tools"),
    "libnvidia-container-tools": ("libnvidia-container1",),
}


@dataclass(frozen=True)
class Offer:
    """What the driver repository holds. drivers: versions (all that the lab knows); signed_by: one of keys.py's names."""

    drivers: tuple[str, ...] = tuple(driver.version for driver in packages.DRIVERS)
    signed_by: str = "driver"
    headers: bool = True
    """Are the headers of the running kernel in it?"""
    distros: tuple[str, ...] = USUAL


@dataclass(frozen=True)
class Repository:
    """As inventories/lab.py hands it to the product. url and key_url hold {distro}, for a product such as debian12."""

    url: str
    key_url: str
    fingerprint: str


def address(network: Network) -> str:
    return f"http://{network.gateway}:{PORT}"


def usual() -> Offer:
    """What the lab that is up offers when nothing else is asked for."""
    if not _USUAL.exists():
        return Offer()
    kept = json.loads(_USUAL.read_text())
    return Offer(tuple(kept["drivers"]), kept["signed_by"], kept["headers"], tuple(kept["distros"]))


def remember_usual(offer: Offer) -> None:
    _USUAL.write_text(json.dumps(asdict(offer)))


def build_repositories(network: Network, offer: Offer | None = None) -> Path:
    """The folder to be served, built when its sources or what it is built for have changed. offer: None for the usual one."""
    offer = offer or usual()
    kernel = os.uname().release
    # gpg leaves an agent running: in this group it ends with the work, or with the lab when this process is killed
    group = cgroup.make(network.cgroup / "signing")
    try:
        fingerprints = [keys.make_key(name, group) for name in dict.fromkeys((*keys.GOOD, offer.signed_by))]
        sources = [
            Path(each).read_text()
            for each in (__file__, keys.__file__, dressed.__file__, distros.__file__, rpm.__file__, el.__file__)
        ]
        parts = [*sources, packages.sources_digest(), kernel, address(network), *fingerprints, json.dumps(asdict(offer))]
        root = CACHE / "repository" / _digest(parts)
        if not root.exists():
            say("building the stand-in packages and their repository")
            with tempfile.TemporaryDirectory(prefix=".new-", dir=_made(root.parent)) as scratch:
                _fill(Path(scratch, "root"), network, kernel, offer, group)
                move_into_place(Path(scratch, "root"), root)
    finally:
        cgroup.remove(group)
    return root


def repositories(network: Network, distro: str | None = None) -> dict[str, Repository]:
    """By the product's names, once build_repositories() has made their keys: for all hosts, or for those of an rpm distribution."""
    driver, toolkit = f"{address(network)}/cuda/repos/{{distro}}/x86_64/", f"{address(network)}/libnvidia-container"
    if distro is not None and DISTROS[distro].family == "el":
        docker, key = f"{address(network)}/{el.DOCKER}/", f"{address(network)}/{el.DOCKER_KEY}"
        return {
            "nvidia-driver": Repository(driver, f"{driver}{_RPM_KEY}", keys.fingerprint("driver")),
            "nvidia-toolkit": Repository(f"{toolkit}/stable/rpm/x86_64/", f"{toolkit}/gpgkey", keys.fingerprint("toolkit")),
            "docker": Repository(docker, key, keys.fingerprint("docker")),
        }
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


def put_back(network: Network) -> None:
    """The usual offer, and nothing goes wrong."""
    for path in (RULES, RULES.with_suffix(".used")):
        path.unlink(missing_ok=True)
    put_up(network, usual())


def package_files(version: str, distro: str) -> Path:
    """The folder of the package files of one driver version for a distribution."""
    return _driver_packages(next(driver for driver in packages.DRIVERS if driver.version == version), DISTROS[distro])


def _show(root: Path) -> None:
    link = _SERVED.with_suffix(".new")
    link.unlink(missing_ok=True)
    link.symlink_to(root)
    link.rename(_SERVED)


def _fill(root: Path, network: Network, kernel: str, offer: Offer, group: Path) -> None:
    toolkit = root / "libnvidia-container"
    binary_key = _made(root) / "key.gpg"
    keys.export(offer.signed_by, group, binary_key, armor=False)
    for name in offer.distros:
        distro = DISTROS[name]
        folder = _made(root / "cuda" / "repos" / distro.product / "x86_64")
        drivers = [driver for driver in packages.DRIVERS if driver.version in offer.drivers]
        for driver in drivers:
            shutil.copytree(_driver_packages(driver, distro), folder, dirs_exist_ok=True, copy_function=os.link)
        keys.export(offer.signed_by, group, folder / _DRIVER_KEY)
        if distro.family == "el":
            keys.export(offer.signed_by, group, folder / _RPM_KEY)
            rpm.sign(folder, offer.signed_by, group)
            rpm.add_streams(folder, rpm.driver_streams(drivers))
            continue
        if offer.headers:
            packages.build_headers(folder, kernel)
        packages.build_keyring(folder, binary_key, address(network), distro.product)
        index(folder, offer.signed_by, "NVIDIA CUDA", group)
    binary_key.unlink()
    flat = toolkit / "stable" / "deb" / "amd64"
    for version in packages.TOOLKITS:
        packages.build_toolkit(version, flat)
    keys.export("toolkit", group, toolkit / "gpgkey")
    line = f"deb {address(network)}/libnvidia-container/stable/deb/$(ARCH) /\n"
    (flat.parent / "nvidia-container-toolkit.list").write_text(line)
    index(flat, "toolkit", "libnvidia-container", group)
    index(_made(root / "unsigned"), None, "somebody's", group)
    if any(DISTROS[name].family == "el" for name in offer.distros):
        _fill_el(root, kernel, offer, flat, group)


def _fill_el(root: Path, kernel: str, offer: Offer, toolkit: Path, group: Path) -> None:
    """What rpm hosts have beside the driver: the toolkit, the distribution's own packages, Docker. toolkit: folder of its .deb files."""
    for deb in toolkit.glob("*.deb"):
        rpm.repack(
            deb.name.split("_")[0], deb, toolkit.parents[1] / "rpm/x86_64", _TOOLKIT_REQUIRES.get(deb.name.split("_")[0], ())
        )
    if offer.headers:
        el.build_base(root / el.BASE, kernel)
    el.build_docker(root / el.DOCKER)
    for name, folder, key in (
        ("toolkit", toolkit.parents[1] / "rpm/x86_64", None),
        ("rocky", _made(root / el.BASE), root / "rocky" / "RPM-GPG-KEY-Rocky-9"),
        ("docker", root / el.DOCKER, root / el.DOCKER_KEY),
    ):
        keys.make_key(name, group)
        rpm.sign(folder, name, group)
        if key is not None:
            keys.export(name, group, key)


def _driver_packages(driver: packages.DriverRelease, distro: Distro) -> Path:
    """Kept apart from the repositories, which share them."""
    own = {"debian": (), "ubuntu": (dressed.__file__,), "el": (dressed.__file__, rpm.__file__)}[distro.family]
    sources = [packages.sources_digest(), *(Path(each).read_text() for each in own)]
    folder = CACHE / "packages" / f"{driver.version}-{distro.family}-{_digest(sources)}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix=".new-", dir=_made(folder.parent)) as scratch:
            new = Path(scratch, "packages")
            parts = _driver_packages(driver, DISTROS["debian12"]) if distro.family != "debian" else new
            if distro.family == "ubuntu":
                build_ubuntu(driver, parts, new)
            elif distro.family == "el":
                rpm.build_el(driver, parts, new)
            else:
                packages.build_driver(driver, new)
            move_into_place(new, folder)
    return folder


def index(folder: Path, key: str | None, label: str, group: Path) -> None:
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
