"""What makes Debian's user land a host that is dressed as Rocky Linux 9: its base packages and Docker as rpm stand-ins, and its files.

Docker is Debian's own, unpacked into the root file system where nothing looks for it; docker-ce and the like only put it into place.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from . import rpm
from .command import run
from .network import Network
from .rpm import Rpm

BASE = "rocky/9/BaseOS/x86_64/os"
DOCKER = "docker-ce/linux/centos/9/x86_64/stable"
DOCKER_KEY = "docker-ce/linux/centos/gpg"
HIDDEN = "usr/lib/dressed"
"""Where Debian's package manager and Docker are on a dressed host."""

DOCKER_DEBS = ("containerd", "docker.io", "runc", "tini")
_SERVICES = Path(__file__).parent / "standins" / "el"
_DOCKER = {
    "docker-ce": {"dockerd": "usr/sbin/dockerd", "docker-proxy": "usr/sbin/docker-proxy", "docker-init": "usr/bin/tini-static"},
    "docker-ce-cli": {"docker": "usr/bin/docker"},
    "containerd.io": {
        "containerd": "usr/bin/containerd",
        "ctr": "usr/bin/ctr",
        "containerd-shim-runc-v2": "usr/bin/containerd-shim-runc-v2",
        "runc": "usr/sbin/runc",
    },
    "docker-buildx-plugin": {},
    "docker-compose-plugin": {},
}
_REQUIRES = {"docker-ce": ("docker-ce-cli", "containerd.io")}

_DNF_CONF = """\
[main]
gpgcheck=1
installonly_limit=3
clean_requirements_on_remove=True
best=True
skip_if_unavailable=False
"""

_REPO = """\
[baseos]
name=Rocky Linux 9 - BaseOS (stand-in of a test lab)
baseurl={address}/{base}/
gpgcheck=1
gpgkey={address}/rocky/RPM-GPG-KEY-Rocky-9
enabled=1

[crb]
name=Rocky Linux 9 - CRB (stand-in of a test lab: the same packages)
baseurl={address}/{base}/
gpgcheck=1
gpgkey={address}/rocky/RPM-GPG-KEY-Rocky-9
enabled=0
"""


def host_files(network: Network, port: int) -> dict[str, str]:
    """Files of one host that depend on its lab: where the distribution's own packages are. Path -> text."""
    return {"etc/yum.repos.d/rocky.repo": _REPO.format(address=f"http://{network.gateway}:{port}", base=BASE)}


def build_base(target: Path, kernel: str) -> None:
    """The distribution's own packages: headers of the running kernel, and EPEL's."""
    with tempfile.TemporaryDirectory(prefix="gpu-bringup-package-") as scratch:
        headers, epel = Path(scratch, "headers"), Path(scratch, "epel")
        source = headers / "usr/src/kernels" / kernel
        source.mkdir(parents=True)
        (source / "Makefile").write_text(f"# stand-in: no headers of {kernel}\n")
        (headers / "usr/lib/modules" / kernel).mkdir(parents=True)
        (headers / "usr/lib/modules" / kernel / "build").symlink_to(f"/usr/src/kernels/{kernel}")
        (epel / "usr/share/doc/epel-release").mkdir(parents=True)
        (epel / "usr/share/doc/epel-release/README").write_text("stand-in of a test lab: EPEL has nothing here\n")
        version, _, rest = kernel.partition("-")
        # rpm allows no dash in a release, and the names that people use hold the whole of `uname -r`
        tags = [f"Provides: kernel-devel-{kernel} = {version}", f"Provides: kernel-devel-uname-r = {kernel.replace('-', '_')}"]
        release = rest.replace("-", "_") or "1"
        rpm.build(
            [
                Rpm("kernel-devel", version, headers, release, tags=tags),
                Rpm(
                    "kernel-devel-matched",
                    version,
                    headers / "none",
                    release,
                    tags=[f"Requires: kernel-devel = {version}-{release}"],
                ),
                Rpm("epel-release", "9", epel),
            ],
            target,
        )


def build_docker(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gpu-bringup-package-") as scratch:
        packages = []
        for name, programs in _DOCKER.items():
            root, scripts = Path(scratch, name, "root"), Path(scratch, name, "scripts")
            (root / "usr/bin").mkdir(parents=True)
            scripts.mkdir()
            for program, at in programs.items():
                (root / "usr/bin" / program).symlink_to(f"/{HIDDEN}/docker/{at}")
            if (_SERVICES / name).is_dir():
                shutil.copytree(_SERVICES / name, root / "usr/lib/systemd/system", dirs_exist_ok=True)
                # as Docker's own: neither enabled nor started
                reload = "getent group docker >/dev/null || groupadd --system docker\nsystemctl daemon-reload || :\n"
                (scripts / "postinst").write_text(reload)
            tags = [f"Requires: {each}" for each in _REQUIRES.get(name, ())]
            packages.append(Rpm(name, "20.10.24", root, tags=tags, scripts=scripts))
        rpm.build(packages, target)


def dress(root: Path) -> None:
    """The root file system's last touches: Debian's package manager out of sight, a package that says what this is."""
    hidden = root / HIDDEN / "bin"
    hidden.mkdir(parents=True, exist_ok=True)
    for pattern in ("apt", "apt-*", "dpkg", "dpkg-*"):
        for path in (root / "usr/bin").glob(pattern):
            path.rename(hidden / path.name)
    (root / "etc/apt").rename(root / HIDDEN / "etc-apt")
    (root / "etc/debian_version").unlink()
    (root / "etc/yum.repos.d").mkdir(exist_ok=True)
    (root / "etc/pki/rpm-gpg").mkdir(parents=True, exist_ok=True)
    # as in the distribution; Debian's plugin for local packages has no repository here
    (root / "etc/dnf/dnf.conf").write_text(_DNF_CONF)
    (root / "etc/dnf/plugins/local.conf").write_text("[main]\nenabled=0\n")
    (root / "usr/lib64").mkdir(exist_ok=True)
    (root / "etc/ld.so.conf.d/lib64.conf").write_text("/usr/lib64\n")
    with tempfile.TemporaryDirectory(prefix="gpu-bringup-package-", dir=root / "var/tmp") as scratch:
        text = Path(scratch, "root/etc")
        text.mkdir(parents=True)
        (text / "rocky-release").write_text("Rocky Linux release 9.6 (Blue Onyx)\n")
        shells = "Provides: /bin/sh, /usr/bin/sh"
        release = ["Provides: system-release = 9.6, system-release(releasever) = 9, redhat-release = 9.6", shells]
        rpm.build([Rpm("rocky-release", "9.6", Path(scratch, "root"), tags=release)], Path(scratch))
        (package,) = Path(scratch).glob("*.rpm")
        run(["chroot", str(root), "rpm", "--install", "--force-debian", f"/{package.relative_to(root)}"])
    (root / "etc/redhat-release").symlink_to("rocky-release")
