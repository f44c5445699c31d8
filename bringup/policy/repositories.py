"""Package sources: the catalog's, at the user's address where one is set."""

from __future__ import annotations

import re
from typing import Literal

from bringup.catalog import Catalog, Distro
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.target import Repository

KEYRINGS = {  # the paths that the vendors' own instructions use, so that their entries and ours agree
    "nvidia-driver": "/usr/share/keyrings/cuda-archive-keyring.gpg",
    "nvidia-toolkit": "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg",
    "docker": "/etc/apt/keyrings/docker.asc",
}

# folders of NVIDIA's repositories and of other copies, and of Docker's
RELEASE = re.compile(r"(debian|ubuntu|rhel|rocky|almalinux|centos|fedora|amzn|sles|opensuse|azl)\d+")
OF_DOCKER = re.compile(r"/linux/(debian|ubuntu|rhel|centos|fedora)(/|$)")
MACHINES = {"x86_64": {"x86_64", "amd64"}, "aarch64": {"aarch64", "arm64", "sbsa"}}


def repository(
    settings: Settings, catalog: Catalog, name: Literal["nvidia-driver", "nvidia-toolkit", "docker"], distro: Distro, arch: str
) -> Repository:
    """Raises Refused."""
    known = catalog.repository(name, distro, arch)
    if known is None:
        raise Refused("no-repository", f"there is no {name} repository for {distro.name} on {arch}", "use another source")
    fingerprint = known.fingerprint.value if known.fingerprint else None
    url, key_url = known.url, known.key_url
    override = settings.repositories.get(name)
    if override:
        machine = distro.nvidia_arch.get(arch, arch)

        def fill(text: str) -> str:
            return text.replace("{distro}", distro.nvidia_repo).replace("{arch}", machine)

        url, key_url = fill(override.url), fill(override.key_url or key_url)
        if (other := _of_another_host(url, distro, arch)) and "untried-distribution" not in settings.accept:
            reason = f"{url} is for {other}, and this host is {distro.name} on {arch}"
            way = f"set gpu_repositories['{name}'] to that of {distro.nvidia_repo} on {machine}, or write {{distro}} and {{arch}} in it"
            raise Refused("repository-of-another-release", reason, way, "untried-distribution")
        fingerprint = override.fingerprint or fingerprint
    if fingerprint is None:
        way = f"set gpu_repositories['{name}']['fingerprint'] to the one that its owner publishes"
        raise Refused("no-fingerprint", f"no key fingerprint is known for {url}", way)
    keyring = KEYRINGS[name] if distro.family == "apt" else f"/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-bringup-{name}"
    return Repository(name, url, key_url, fingerprint, keyring, known.suite or "/", known.component, distro.family)


def _of_another_host(url: str, distro: Distro, arch: str) -> str | None:
    """The folder in an address that names another release or architecture than the host's; a mirror's own names say nothing."""
    own = {distro.nvidia_repo, f"{distro.id}{distro.version}", f"{distro.id}{distro.version.replace('.', '')}"}
    others = set().union(*MACHINES.values()) - MACHINES.get(arch, set())
    for folder in url.lower().split("/")[3:]:
        if folder in others or (RELEASE.fullmatch(folder) and folder not in own):
            return folder
    docker = OF_DOCKER.search(url.lower())
    alike = {"rhel", "centos"} if distro.family == "dnf" else {distro.docker.ce_os}
    return docker[1] if docker and docker[1] not in alike else None
