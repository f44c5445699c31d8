"""The distributions of the lab's hosts: Debian's own, and Debian dressed as others.

A dressed host is Debian's user land that wears another distribution's os-release and package manager, with the driver under that
distribution's names in NVIDIA's layout. It shows that the product speaks the right language, not that it runs on the real thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import LabError


@dataclass(frozen=True)
class Distro:
    name: str
    suite: str
    """Debian's release, whose packages it is made of."""
    product: str
    """The folder in NVIDIA's repository."""
    family: Literal["debian", "ubuntu", "el"] = "debian"
    """How the driver's packages are named."""
    os_release: str | None = None
    """What a dressed host says that it is."""
    packages: tuple[str, ...] = ()
    """Debian's packages that its package manager needs."""


_UBUNTU = """\
PRETTY_NAME="Ubuntu 24.04.3 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.3 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
VARIANT="lab host: Debian dressed as Ubuntu"
VARIANT_ID=dressed
"""

_ROCKY = """\
NAME="Rocky Linux"
VERSION="9.6 (Blue Onyx)"
ID="rocky"
ID_LIKE="rhel centos fedora"
VERSION_ID="9.6"
PLATFORM_ID="platform:el9"
PRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"
VARIANT="lab host: Debian dressed as Rocky Linux"
VARIANT_ID=dressed
"""

_DNF = ("dnf", "curl", "dnf-plugins-core", "rpm", "iptables", "libdevmapper1.02.1", "libseccomp2", "libsystemd0")
"""The package manager, curl as every such host has it, and what Debian's Docker needs, which hosts have as rpm packages."""

DISTROS = {
    distro.name: distro
    for distro in (
        Distro("debian12", "bookworm", "debian12"),
        Distro("debian13", "trixie", "debian13"),
        # Debian 12: its apt and systemd are the nearest to those of Ubuntu 24.04, and its docker.io has the client in it
        Distro("ubuntu2404", "bookworm", "ubuntu2404", family="ubuntu", os_release=_UBUNTU),
        Distro("rocky9", "bookworm", "rhel9", family="el", os_release=_ROCKY, packages=_DNF),
    )
}
USUAL = ("debian12", "debian13")
"""Of the hosts that are made when no distribution is asked for, in turn."""


def find_distro(name: str) -> Distro:
    """LabError for a distribution that the lab does not know."""
    if name not in DISTROS:
        raise LabError(f"the lab knows no distribution {name!r}: use one of {', '.join(DISTROS)}")
    return DISTROS[name]
