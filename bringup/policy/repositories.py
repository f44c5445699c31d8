"""Package sources: the catalog's, at the user's address where one is set."""

from __future__ import annotations

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
        fingerprint = override.fingerprint or fingerprint
    if fingerprint is None:
        way = f"set gpu_repositories['{name}']['fingerprint'] to the one that its owner publishes"
        raise Refused("no-fingerprint", f"no key fingerprint is known for {url}", way)
    keyring = KEYRINGS[name] if distro.family == "apt" else f"/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-bringup-{name}"
    return Repository(name, url, key_url, fingerprint, keyring, known.suite or "/", known.component, distro.family)
