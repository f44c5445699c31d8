"""Builds the stand-in packages from standins/packages: NVIDIA's names and layout, behaviour of a simulated GPU.

One folder a package: `control`, maintainer scripts, `files/` to install, and `build`, a script that puts the rest into $OUT.
In texts @VERSION@ and the like are replaced; `build` and the C sources have the same as variables and macros.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .command import run

STANDINS = Path(__file__).parent / "standins"
_SOURCES = STANDINS / "packages"
_SCRIPTS = ("control", "triggers", "preinst", "postinst", "prerm", "postrm")
_LAST_LINES = """\
 This is a stand-in from a test lab, and no software of NVIDIA's.
Maintainer: gpu-bringup lab <lab@example.invalid>
"""
_EPOCH = "SOURCE_DATE_EPOCH=1764000000"
_COMPILER = "gcc"
_NUMBERS = ("CUDA_VERSION",)
# no feature macro beyond POSIX: with _GNU_SOURCE a newer libc puts in symbols that the older one of a host does not have
_C_FLAGS = f"-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -Wall -Wextra -Wno-format-truncation -I{STANDINS / 'include'}"


@dataclass(frozen=True)
class DriverRelease:
    version: str
    """As NVIDIA writes it: 580.159.04."""
    cuda: str
    """The CUDA version that this driver speaks: 13.0."""

    @property
    def branch(self) -> str:
        return self.version.partition(".")[0]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of kernel modules; from 615 on there are no proprietary ones."""
        return ("open", "proprietary") if int(self.branch) < 615 else ("open",)


DRIVERS = (
    DriverRelease("570.211.01", cuda="12.8"),
    DriverRelease("580.159.04", cuda="13.0"),
    DriverRelease("580.178.04", cuda="13.0"),
    DriverRelease("620.70.06", cuda="13.5"),
)
"""What the lab's driver repository offers, oldest first."""

_MODULES = {"open": "nvidia-kernel-open-dkms", "proprietary": "nvidia-kernel-dkms"}

TOOLKITS = ("1.20.0",)
"""Versions of the NVIDIA Container Toolkit that the lab's repository offers."""


def build_driver(driver: DriverRelease, target: Path) -> None:
    """The packages of one driver version, as .deb files in the folder target."""
    major, minor = driver.cuda.split(".")
    variables = {
        "VERSION": driver.version,
        "BRANCH": driver.branch,
        "CUDA": driver.cuda,
        "CUDA_VERSION": str(int(major) * 1000 + int(minor) * 10),
        "FABRICMANAGER": "nvidia-fabricmanager" + (f"-{driver.branch}" if int(driver.branch) < 580 else ""),
    }
    _build_all("driver", variables, target)
    for kind in driver.kinds:
        (other,) = (name for each, name in _MODULES.items() if each != kind)
        own = {"KIND": kind, "MODULES": _MODULES[kind], "OTHER_MODULES": other, "METAPACKAGE": _metapackage(driver, kind)}
        _build_all("modules", variables | own, target)


def _metapackage(driver: DriverRelease, kind: str) -> str:
    name = {"open": "nvidia-open", "proprietary": "cuda-drivers"}[kind]
    return name if int(driver.branch) >= 590 else f"{name}-{driver.branch}"


def build_drivers(drivers: Sequence[DriverRelease], target: Path) -> None:
    """Several versions into one folder, side by side."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for _ in pool.map(lambda driver: build_driver(driver, target), drivers):
            pass


def build_toolkit(version: str, target: Path) -> None:
    """The packages of one version of the container toolkit."""
    _build_all("toolkit", {"VERSION": version}, target)


def build_headers(target: Path, kernel: str) -> None:
    """The headers of one kernel release, as `uname -r` names it: the one that hosts share with this machine."""
    _build_all("kernel", {"KERNEL": kernel}, target)


def build_keyring(target: Path, key: Path, address: str, product: str) -> None:
    """cuda-keyring for one distribution: the repository's public key (binary) and its place in the apt sources."""
    _build_all("keyring", {"KEYRING": str(key), "URL": address, "PRODUCT": product}, target)


def sources_digest() -> str:
    """Changes with everything that decides what the packages are like."""
    total = hashlib.sha256()
    for path in sorted([Path(__file__), *_SOURCES.rglob("*"), *(STANDINS / "include").rglob("*")]):
        if path.is_file():
            mode = path.stat().st_mode & 0o111
            total.update(f"{path.name} {mode} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:12]


def _build_all(kind: str, variables: Mapping[str, str], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    folders = sorted(path.parent for path in (_SOURCES / kind).glob("*/control"))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for _ in pool.map(lambda folder: _build(folder, variables, target), folders):
            pass


def _build(source: Path, variables: Mapping[str, str], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gpu-bringup-package-") as scratch:
        root, work = Path(scratch, "root"), Path(scratch, "work")
        (root / "DEBIAN").mkdir(parents=True)
        work.mkdir()
        if (source / "files").is_dir():
            for path in sorted(p for p in (source / "files").rglob("*") if p.is_file()):
                _install(path, root / path.relative_to(source / "files"), variables)
        for name in _SCRIPTS:
            if (source / name).exists():
                _install(source / name, root / "DEBIAN" / name, variables)
        control = root / "DEBIAN" / "control"
        control.write_text(description(control.read_text()))
        if (source / "build").exists():
            _run_build(source, root, work, variables)
        pack(root, target)


def description(control: str) -> str:
    """The control file whose last field is a description, with what it says of every package of the lab."""
    return control + _LAST_LINES


def pack(root: Path, target: Path) -> None:
    """A .deb of the folder root into the folder target. Times, owners and modes are the same wherever it is built, and so is the file."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    run(["env", _EPOCH, "dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(root), str(target)])


def _run_build(source: Path, root: Path, work: Path, variables: Mapping[str, str]) -> None:
    macros = [f"-D{name}={value}" if name in _NUMBERS else f'-D{name}="{value}"' for name, value in variables.items()]
    settings = {**variables, "OUT": str(root), "WORK": str(work), "CC": _COMPILER, "CFLAGS": " ".join([_C_FLAGS, *macros])}
    assignments = [f"{name}={value}" for name, value in settings.items()]
    run(["env", "-C", str(source), "LC_ALL=C.UTF-8", *assignments, "sh", "./build"], timeout_s=120)


def _install(source: Path, destination: Path, variables: Mapping[str, str]) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text()
    for name, value in variables.items():
        text = text.replace(f"@{name}@", value)
    destination.write_text(text)
    shutil.copymode(source, destination)
