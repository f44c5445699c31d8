"""What can be broken on a proven host behind its back, by a command as root, and the words with which `verify` must name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Breakage:
    """`words`: one of the host's problems must hold them all; none: verify still finds the host proven. `steps`: what heals it."""

    title: str
    command: str
    words: tuple[str, ...]
    steps: tuple[str, ...]
    host: str = "lab-1"
    check: str = "true"
    """Run as root after healing; must succeed."""


LAB_1 = (
    Breakage("nvidia runtime taken out of daemon.json, Docker restarted",
             "printf '{\"runtimes\": {}}' >/etc/docker/daemon.json && systemctl restart docker",
             ("daemon.json",), ("daemon-json",)),
    Breakage("binary of the nvidia runtime removed",
             "rm /usr/bin/nvidia-container-runtime",
             ("nvidia-container-runtime",), ("toolkit-packages",),
             check="[ -x /usr/bin/nvidia-container-runtime ]"),
    Breakage("driver unloaded",
             "systemctl stop nvidia-persistenced; modprobe -r nvidia_uvm nvidia_modeset nvidia",
             ("driver", "loaded"), ("driver-loaded",),
             check="[ -e /proc/driver/nvidia/version ] && systemctl is-active nvidia-persistenced"),
    Breakage("daemon.json changed, Docker not restarted",
             "sed -i 's/8g/9g/' /etc/docker/daemon.json",
             ("daemon.json",), ("daemon-json",)),
    Breakage("image removed",
             "docker image rm -f $(docker image ls -q)",
             ("image", "not on the host"), ("images",)),
    Breakage("provenance removed",
             "rm -r /etc/gpu-bringup",
             (), ("provenance",),
             check="[ -s /etc/gpu-bringup/provenance.json ]"),
)  # fmt: skip

LAB_2 = (
    Breakage("CDI spec removed",
             "rm -f /etc/cdi/nvidia.* /var/run/cdi/nvidia.*",
             ("cdi",), ("cdi-spec",), host="lab-2"),
    Breakage("nvidia_uvm unloaded",
             "modprobe -r nvidia_uvm && rm -f /dev/nvidia-uvm /dev/nvidia-uvm-tools",
             ("nvidia_uvm is not loaded",), ("driver-loaded",), host="lab-2",
             check="[ -c /dev/nvidia-uvm ]"),
    Breakage("persistence daemon stopped",
             "systemctl stop nvidia-persistenced",
             ("nvidia-persistenced",), ("driver-services",), host="lab-2",
             check="systemctl is-active nvidia-persistenced"),
    Breakage("package half removed",
             "dpkg --force-all --remove nvidia-container-toolkit-base >/dev/null 2>&1; [ ! -e /usr/bin/nvidia-ctk ]",
             ("nvidia-container-toolkit-base",), ("toolkit-packages",), host="lab-2",
             check="nvidia-ctk --version"),
    Breakage("Docker stopped",
             "systemctl stop docker.socket docker.service",
             ("Docker",), ("docker-engine",), host="lab-2",
             check="systemctl is-active docker"),
    Breakage("user's key added to daemon.json, runtime taken out",
             "printf '{\"debug\": true, \"max-concurrent-downloads\": 5}' >/etc/docker/daemon.json && systemctl restart docker",
             ("daemon.json",), ("daemon-json",), host="lab-2",
             check="grep -q max-concurrent-downloads.*5 /etc/docker/daemon.json && grep -q debug.*true /etc/docker/daemon.json"),
)  # fmt: skip
