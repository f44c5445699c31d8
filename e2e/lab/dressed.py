"""The driver's packages under the names of other distributions, put together from the parts that Debian's packages of it are."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .command import run
from .packages import DriverRelease, description, pack

_SCRIPTS = ("preinst", "postinst", "prerm", "postrm", "triggers")


@dataclass(frozen=True)
class Package:
    """parts: Debian's packages whose files and scripts it has. depends: on packages of the same version, or on others as text."""

    name: str
    parts: tuple[str, ...] = ()
    depends: tuple[str, ...] = ()
    group: str = ""
    """A virtual package of which only one may be there: that of other branches has the same files."""


def ubuntu_packages(driver: DriverRelease) -> list[Package]:
    """As in NVIDIA's repository for Ubuntu. From 590 on without the branch; where nvidia-smi is since then was looked up nowhere."""
    old = int(driver.branch) < 590
    b = f"-{driver.branch}" if old else ""
    fabric = f"nvidia-fabricmanager-{driver.branch}" if int(driver.branch) < 580 else "nvidia-fabricmanager"
    persistence = f"nvidia-compute-utils{b}" if old else "nvidia-persistenced"
    compute, utils = f"libnvidia-compute{b}", f"nvidia-utils{b}"
    found = [
        Package(compute, ("libcuda1", "libnvidia-ml1"), () if old else (utils,), "libnvidia-compute"),
        Package(utils, ("nvidia-driver-cuda",), (compute,) if old else (), "nvidia-utils"),
        Package(persistence, ("nvidia-persistenced",), (), "nvidia-compute-utils"),
        Package(fabric, (fabric,), (), "fabricmanager"),
    ]
    modules = {
        "open": ("nvidia-kernel-open-dkms", f"nvidia-dkms{b}-open"),
        "proprietary": ("nvidia-kernel-dkms", f"nvidia-dkms{b}"),
    }
    metas = {"open": f"nvidia-open{b}", "proprietary": f"cuda-drivers{b}"}
    for kind in driver.kinds:
        part, name = modules[kind]
        found += [
            Package(name, (part,), (), "nvidia-dkms-kernel"),
            Package(metas[kind], (), (compute, utils, name, persistence)),
        ]
    return found


def el_packages(driver: DriverRelease) -> list[Package]:
    """As in NVIDIA's repository for RHEL 9. `group` of the modules is what the rest of the driver asks for."""
    fabric = f"nvidia-fabricmanager-{driver.branch}" if int(driver.branch) < 580 else "nvidia-fabricmanager"
    found = [
        Package("nvidia-driver-cuda-libs", ("libcuda1", "libnvidia-ml1")),
        Package("nvidia-driver-cuda", ("nvidia-driver-cuda",), ("nvidia-driver-cuda-libs", "nvidia-persistenced", "nvidia-kmod")),
        Package("nvidia-persistenced", ("nvidia-persistenced",)),
        Package("nvidia-fabric-manager" if int(driver.branch) < 580 else "nvidia-fabricmanager", (fabric,)),
    ]
    modules = {
        "open": ("nvidia-kernel-open-dkms", "kmod-nvidia-open-dkms"),
        "proprietary": ("nvidia-kernel-dkms", "kmod-nvidia-latest-dkms"),
    }
    metas = {"open": "nvidia-open", "proprietary": "cuda-drivers"}
    for kind in driver.kinds:
        part, name = modules[kind]
        found += [Package(name, (part,), (), "nvidia-kmod"), Package(metas[kind], (), ("nvidia-driver-cuda", name))]
    return found


def build_ubuntu(driver: DriverRelease, parts: Path, target: Path) -> None:
    """.deb files into target, from those of Debian in the folder parts."""
    target.mkdir(parents=True, exist_ok=True)
    for package in ubuntu_packages(driver):
        with tempfile.TemporaryDirectory(prefix="gpu-bringup-package-") as scratch:
            root = Path(scratch)
            unpack(package, parts, root, root / "DEBIAN")
            version = f"{driver.version}-{'1' if 'fabric' in package.name else '0ubuntu1'}"
            depends = ", ".join(f"{name} (= {driver.version}-0ubuntu1)" for name in package.depends)
            lines = [f"Package: {package.name}", f"Version: {version}", "Architecture: amd64", "Section: utils"]
            lines += [f"Depends: {depends}"] if depends else []
            if package.group:
                lines += [f"{field}: {package.group}" for field in ("Provides", "Conflicts", "Replaces")]
            text = "\n".join([*lines, f"Description: NVIDIA driver, {package.name} (stand-in: simulated GPU)\n"])
            (root / "DEBIAN" / "control").write_text(description(text))
            pack(root, target)


def unpack(package: Package, parts: Path, root: Path, scripts: Path) -> None:
    """Files of the package's parts into root, their maintainer scripts into scripts."""
    scripts.mkdir(parents=True, exist_ok=True)
    for part in package.parts:
        (deb,) = parts.glob(f"{part}_*.deb")
        run(["dpkg-deb", "--extract", str(deb), str(root)])
        with tempfile.TemporaryDirectory() as scratch:
            run(["dpkg-deb", "--control", str(deb), scratch])
            for name in _SCRIPTS:
                if Path(scratch, name).exists():
                    shutil.copy(Path(scratch, name), scripts / name)
