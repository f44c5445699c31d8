"""What this machine must offer before it can hold a lab."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from types import MappingProxyType

from .command import remove, run
from .errors import LabError
from .paths import STATE

# package -> what the lab uses of it
REQUIRED_PACKAGES = {
    "apt-utils": "apt-ftparchive: the package repository",
    "ca-certificates": "root file systems that trust what this machine trusts",
    "debian-archive-keyring": "checks Debian's signatures, also on Ubuntu",
    "docker-registry": "the registry",
    "gcc": "the small C stand-ins",
    "gnupg": "signs the package repository",
    "iproute2": "ip",
    "iptables": "a firewall on this machine must let the lab's network through",
    "libc6-dev": "the small C stand-ins",
    "mmdebstrap": "root file systems",
    "nftables": "the lab's NAT in a table of its own",
    "openssh-client": "ssh, ssh-keygen",
    "skopeo": "pushes images without a Docker engine",
    "systemd-container": "systemd-nspawn",
    "zstd": "root file systems",
}

# What a host does in its own namespaces: an overlay on STATE, a network card of its own, a clock of its own.
_PROBE = """
set -e
cd "$0"
mount -t tmpfs tmpfs /run
mount -t overlay -o volatile,lowerdir=lower,upperdir=upper,workdir=work overlay root
ip link add gblprobe type veth peer name host0
"""


def impossible() -> str | None:
    """Why this machine cannot hold the lab, in one sentence, or None when it can. Leaves nothing behind."""
    try:
        check_root()
        check_packages()
        STATE.mkdir(parents=True, exist_ok=True)
        try:
            check_namespaces()
        finally:
            if not any(STATE.iterdir()):
                STATE.rmdir()
    except (LabError, OSError) as problem:
        return str(problem)
    return None


def check_root() -> None:
    """LabError when this process is not root."""
    if os.geteuid() != 0:
        raise LabError("the lab needs root (it mounts, and makes network namespaces): use sudo")


def check_packages(more: Mapping[str, str] = MappingProxyType({})) -> None:
    """LabError when apt packages are missing; more: what some hosts need beside REQUIRED_PACKAGES."""
    missing = missing_packages(more)
    if missing:
        raise LabError(f"the lab needs {', '.join(missing)}: apt-get install -y --no-install-recommends {' '.join(missing)}")


def check_namespaces() -> None:
    """LabError when this process may not do what a lab needs; tries it in a folder of STATE."""
    folder = STATE / "probe"
    for name in ("lower", "upper", "work", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    try:
        run(["nft", "list", "tables"])
        run(["unshare", "--mount", "--net", "--time", "--fork", "--propagation", "private", "sh", "-c", _PROBE, str(folder)])
    except LabError as problem:
        raise LabError(
            f"this machine cannot hold the lab (an unprivileged container, or {STATE} is on no ordinary disk?): {problem}"
        ) from None
    finally:
        remove(folder)


def missing_packages(more: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """The apt packages that the lab needs and that are not installed, sorted."""
    wanted = {**REQUIRED_PACKAGES, **more}
    try:
        listed = subprocess.run(
            ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package}\\n", *wanted],
            capture_output=True, text=True,
        ).stdout  # fmt: skip
    except FileNotFoundError:
        raise LabError("the lab needs a Debian or Ubuntu machine: dpkg-query was not found") from None
    installed = {package for status, package in map(str.split, listed.splitlines()) if status == "installed"}
    return sorted(set(wanted) - installed)
