"""rpm packages and repositories for dressed hosts: put together from the parts that Debian's packages are, signed, with module streams."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import keys
from .command import run
from .dressed import Package, el_packages, unpack
from .packages import DriverRelease

REQUIRED_PACKAGES = {"createrepo-c": "repositories of rpm packages", "rpm": "rpmbuild, rpmsign"}
"""apt packages that this machine needs for rpm hosts alone."""

_RELEASE = "1.el9"


@dataclass(frozen=True)
class Rpm:
    """One package. root: its files; scripts: maintainer scripts of a Debian package that do its work."""

    name: str
    version: str
    root: Path
    release: str = _RELEASE
    epoch: int = 0
    tags: Sequence[str] = ()
    scripts: Path | None = None


def build_el(driver: DriverRelease, parts: Path, target: Path) -> None:
    """.rpm files of one driver version into target, not signed, from Debian's packages of it in the folder parts."""
    with tempfile.TemporaryDirectory(prefix="gpu-bringup-package-") as scratch:
        build([_driver_rpm(driver, package, parts, Path(scratch, package.name)) for package in el_packages(driver)], target)


def _driver_rpm(driver: DriverRelease, package: Package, parts: Path, scratch: Path) -> Rpm:
    root, scripts = scratch / "root", scratch / "scripts"
    root.mkdir(parents=True)
    unpack(package, parts, root, scripts)
    tags = [f"Requires: {name} = 3:{driver.version}" for name in package.depends]
    if package.group:
        tags += [f"Provides: {package.group} = 3:{driver.version}", f"Conflicts: {package.group}"]
    return Rpm(package.name, driver.version, lib64(root), epoch=_epoch(package.name), tags=tags, scripts=scripts)


def lib64(root: Path) -> Path:
    """The same folder, with its libraries where rpm distributions have them."""
    debian = root / "usr/lib/x86_64-linux-gnu"
    if debian.exists():
        debian.rename(root / "usr/lib64")
    return root


def repack(name: str, deb: Path, target: Path, requires: Iterable[str] = ()) -> None:
    """One Debian package of the lab as an rpm of the same name and version."""
    with tempfile.TemporaryDirectory(prefix="gpu-bringup-package-") as scratch:
        root, scripts = Path(scratch, "root"), Path(scratch, "scripts")
        root.mkdir()
        unpack(Package(name, (deb.name.split("_")[0],)), deb.parent, root, scripts)
        version = deb.name.split("_")[1].partition("-")[0]
        tags = [f"Requires: {each} = {version}" for each in requires]
        build([Rpm(name, version, lib64(root), release="1", tags=tags, scripts=scripts)], target)


def build(packages: Sequence[Rpm], target: Path) -> None:
    """Into target, each by itself: two packages may have files of the same name."""
    target.mkdir(parents=True, exist_ok=True)
    for package in packages:
        with tempfile.TemporaryDirectory(prefix="gpu-bringup-rpm-") as scratch:
            tree, spec = Path(scratch, "tree"), Path(scratch, "lab.spec")
            tree.mkdir()
            if package.root.exists():
                shutil.copytree(package.root, tree, symlinks=True, dirs_exist_ok=True)
            spec.write_text(spec_text(package))
            macros = {
                "_topdir": scratch,
                "_rpmdir": str(target),
                "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
            }
            macros |= {"_build_id_links": "none", "__os_install_post": "%{nil}", "_binary_payload": "w1.gzdio"}
            options = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
            run(["rpmbuild", "--quiet", "-bb", "--noclean", "--buildroot", str(tree), *options, str(spec)], timeout_s=120)


def spec_text(package: Rpm) -> str:
    lines = [f"Name: {package.name}", f"Version: {package.version}", f"Release: {package.release}"]
    lines += [f"Epoch: {package.epoch}"] if package.epoch else []
    lines += ["Summary: stand-in: simulated GPU", "License: none", "AutoReqProv: no", *package.tags]
    lines += ["%description", "This is a stand-in from a test lab, and no software of NVIDIA's."]
    lines += _scriptlets(package.scripts) if package.scripts is not None else []
    return "\n".join([*lines, "%files", *_files(package.root)]) + "\n"


def _scriptlets(scripts: Path) -> list[str]:
    lines: list[str] = []
    # after the transaction, since rpm removes what is replaced only then
    after = ["set -- configure", _body(scripts / "postinst")] if (scripts / "postinst").exists() else []
    after += ["/sbin/ldconfig"] if (scripts / "triggers").exists() else []
    if after:
        lines += ["%posttrans", *after]
    if (scripts / "prerm").exists():
        lines += ["%preun", '[ "$1" = 0 ] || exit 0', "set -- remove", _body(scripts / "prerm")]
    return lines


def _body(script: Path) -> str:
    return script.read_text().replace("%", "%%")


def _files(root: Path) -> list[str]:
    """Paths of files and links, quoted; folders belong to nobody."""
    return [f'"/{path.relative_to(root)}"' for path in sorted(root.rglob("*")) if path.is_symlink() or path.is_file()]


def sign(folder: Path, key: str, group: Path) -> None:
    """Signs all packages of a folder, and makes it a repository. group: as for keys.sign()."""
    files = [str(path) for path in sorted(folder.glob("*.rpm"))]
    keys.sign_rpms(key, group, files)
    run(["createrepo_c", "--quiet", "--no-database", "--simple-md-filenames", str(folder)], timeout_s=120)


def add_streams(folder: Path, text: str) -> None:
    """Module streams into a repository that sign() has made."""
    with tempfile.TemporaryDirectory(prefix="gpu-bringup-rpm-") as scratch:
        modules = Path(scratch, "modules.yaml")
        modules.write_text(text)
        run(["modifyrepo_c", "--mdtype=modules", "--no-compress", str(modules), str(folder / "repodata")])


def driver_streams(drivers: Sequence[DriverRelease]) -> str:
    """Streams of the module nvidia-driver, as NVIDIA has them: 580-open, 580-dkms, and open-dkms and latest-dkms for the newest."""
    streams: dict[str, list[str]] = {}
    for driver in drivers:
        for kind, suffix, newest in (("open", "open", "open-dkms"), ("proprietary", "dkms", "latest-dkms")):
            if kind not in driver.kinds:
                continue
            other = {
                "open": ("kmod-nvidia-latest-dkms", "cuda-drivers"),
                "proprietary": ("kmod-nvidia-open-dkms", "nvidia-open"),
            }[kind]
            names = [package.name for package in el_packages(driver) if package.name not in other]
            nevras = [_nevra(name, driver.version) for name in names]
            streams.setdefault(f"{driver.branch}-{suffix}", []).extend(nevras)
            streams.setdefault(newest, []).extend(nevras)
    return "".join(_stream(name, nevras) for name, nevras in streams.items()) + _DEFAULTS


def _nevra(name: str, version: str) -> str:
    return f"{name}-{_epoch(name)}:{version}-{_RELEASE}.x86_64"


def _epoch(name: str) -> int:
    """The driver's packages have one at NVIDIA's, the fabric manager has none."""
    return 0 if "fabric" in name else 3


def _stream(name: str, nevras: Sequence[str]) -> str:
    artifacts = "".join(f"    - {nevra}\n" for nevra in dict.fromkeys(nevras))
    profile = "nvidia-open" if "open" in name else "cuda-drivers"
    return f"""\
---
document: modulemd
version: 2
data:
  name: nvidia-driver
  stream: "{name}"
  version: 20261130000000
  context: 0123abcd
  arch: x86_64
  summary: NVIDIA driver, {name} (stand-in)
  description: Stand-in of a test lab.
  license: {{module: [MIT]}}
  dependencies: [{{requires: {{platform: [el9]}}}}]
  profiles: {{default: {{rpms: [{profile}]}}}}
  artifacts:
    rpms:
{artifacts}...
"""


_DEFAULTS = """\
---
document: modulemd-defaults
version: 1
data: {module: nvidia-driver, stream: latest-dkms, profiles: {latest-dkms: [default]}}
...
"""
