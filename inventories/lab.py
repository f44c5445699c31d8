"""The hosts of the lab that is up (python -m e2e up): the only file outside e2e/ that knows where they are."""

import json
import os
import sys
from pathlib import Path

_description = Path(os.environ.get("GPU_BRINGUP_LAB") or "/var/lib/gpu-bringup-lab") / "lab.json"
if not _description.exists():
    print("inventories/lab.py: no lab is up: python -m e2e up", file=sys.stderr)
    sys.exit(2)
_lab = json.loads(_description.read_text())

lab = (
    [
        (
            host["name"],
            {
                "ssh_hostname": host["address"],
                "ssh_user": host["user"],
                **({"_sudo_password": host["sudo_password"]} if host["sudo_password"] else {}),
                # hosts that are dressed as an rpm distribution, which has no Docker of its own; what is called docker-ce there is
                # a Docker 20.10, which knows no CDI
                **(
                    {"gpu_repositories": host["repositories"], "gpu_docker_source": "docker", "gpu_injection": "runtime"}
                    if "repositories" in host
                    else {}
                ),
            },
        )
        for host in _lab["hosts"]
    ],
    {
        "ssh_key": _lab["ssh_key"],
        "ssh_known_hosts_file": _lab["known_hosts"],
        "ssh_strict_host_key_checking": "yes",
        "_sudo": True,
        # lab hosts are containers, and have no access to Docker's own repository
        "gpu_accept": ["container-host"],
        "gpu_docker_source": "distro",
        # a checkpoint that is brought back is another boot, which auto would prove in full; scenario proof-standard has the other levels
        "gpu_verify": "quick",
        "gpu_repositories": _lab["repositories"],
        "gpu_insecure_registries": [_lab["registry"]],
        "gpu_images": [_lab["image"]],
    },
)
