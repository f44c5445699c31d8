"""An example to copy: three hosts behind a jump host. `bringup`'s settings (gpu_…) are listed in the README.

pyinfra inventories/cluster.py deploys/plan.py       # what would be done, and why
pyinfra inventories/cluster.py deploys/gpu_host.py   # do it
"""

import os

_user = "ubuntu"

gpu_hosts = (
    [
        ("gpu-1", {"ssh_hostname": "10.0.0.11"}),
        ("gpu-2", {"ssh_hostname": "10.0.0.12"}),
        ("gpu-8x", {"ssh_hostname": "10.0.0.20", "gpu_expected_count": 8, "gpu_reboot_timeout": 2400}),
    ],
    {
        "ssh_user": _user,
        "ssh_key": "~/.ssh/id_ed25519",
        # host keys are checked against this file: fill it once with `ssh-keyscan`, and compare the fingerprints
        "ssh_known_hosts_file": "~/.ssh/known_hosts",
        "ssh_strict_host_key_checking": "yes",
        # the jump host and everything else that ssh itself needs: `Host 10.0.0.*` with `ProxyJump bastion` in this file
        "ssh_config_file": "~/.ssh/config",
        "_sudo": _user != "root",
        # where sudo asks for a password: from the environment, never in a file
        **({"_sudo_password": os.environ["GPU_SUDO_PASSWORD"]} if "GPU_SUDO_PASSWORD" in os.environ else {}),
        "_timeout": 900,
        "gpu_driver_branch": "auto",
        "gpu_images": ["auto"],
    },
)
