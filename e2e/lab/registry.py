"""The registry on the lab's network: Debian's docker-registry, without TLS, its content in STATE."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import services
from .command import run
from .network import Network
from .paths import STATE

PORT = 8083  # not 5000: the docker-registry package starts a service there where systemd runs
SERVICE = "registry"

_CONFIG = """\
version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {storage}}}, delete: {{enabled: true}}}}
http: {{addr: "{address}"}}
"""


def address(network: Network) -> str:
    """HOST:PORT, as it stands in image references and in insecure-registries."""
    return f"{network.gateway}:{PORT}"


def serve(network: Network) -> None:
    """Starts the registry, with whatever it held before; it ends with the lab."""
    folder = STATE / "registry"
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yml"
    config.write_text(_CONFIG.format(storage=folder / "storage", address=address(network)))
    services.start(network, SERVICE, PORT, [shutil.which("docker-registry") or "docker-registry", "serve", str(config)])


def push(network: Network, layout: Path, name: str, tag: str) -> None:
    """Pushes the image in an OCI layout, byte for byte: its digest stays the same."""
    run(
        ["skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests", "--dest-tls-verify=false",
         f"oci:{layout}", f"docker://{address(network)}/{name}:{tag}"],
        timeout_s=120,
    )  # fmt: skip
