"""Where things are on the machine with the GPU."""

import os
from pathlib import Path

KIT = Path(os.environ.get("GPU_BRINGUP_KIT") or "/opt/gpu-bringup-kit")
"""What `python -m e2e kit` has made."""

STATE = Path("/var/lib/gpu-bringup-hardware")
"""What the scenario makes, removed at its end."""

ROOT_ARCHIVE, REPOSITORY, REPOSITORIES = "root.tar.xz", "repository", "repositories.json"
"""In the kit: the host's root file system, a package repository, and what to say about it in gpu_repositories."""

REPOSITORY_PORT, REGISTRY_PORT, SSH_PORT = 8092, 8093, 8094
