"""What the host reaches on the machine: a package repository and a registry, for as long as the host lives (one control group)."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from e2e.lab import cgroup
from e2e.lab.errors import LabError

from .host import ADDRESS, ROOT
from .paths import KIT, REGISTRY_PORT, REPOSITORY, REPOSITORY_PORT, STATE

REGISTRY = f"{ADDRESS}:{REGISTRY_PORT}"
_CONFIG = """\
version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {storage}}}}}
http: {{addr: "{address}"}}
"""


def serve() -> None:
    """Starts both; they end with the host's control group."""
    config = STATE / "registry.yml"
    config.write_text(_CONFIG.format(storage=STATE / "registry", address=REGISTRY))
    _start("registry", REGISTRY_PORT, [str(ROOT / "usr/bin/docker-registry"), "serve", str(config)])
    if (KIT / REPOSITORY).is_dir():
        server = [sys.executable, "-m", "http.server", "--bind", ADDRESS, "--directory", str(KIT / REPOSITORY)]
        _start("repository", REPOSITORY_PORT, [*server, str(REPOSITORY_PORT)])


def _start(name: str, port: int, argv: Sequence[str]) -> None:
    group = cgroup.make(cgroup.mounted() / "gpu-bringup-hardware" / "services")
    with (STATE / f"{name}.log").open("ab") as output:
        subprocess.run(
            ["setsid", "--fork", *cgroup.entering(group, argv)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=True, timeout=10,
        )  # fmt: skip
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        try:
            socket.create_connection((ADDRESS, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise LabError(f"the {name} did not answer on port {port} within 15 s: see {STATE / f'{name}.log'}")
