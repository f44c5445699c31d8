"""The host: made from the kit, with the machine's own driver handed in as one that is installed already."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from e2e.lab import cgroup
from e2e.lab.command import remove, run
from e2e.lab.errors import LabError

from .paths import KIT, ROOT_ARCHIVE, SSH_PORT, STATE

NAME, USER = "gpu-1", "admin"
ADDRESS = "127.0.0.1"
ROOT = STATE / "root"
SSH_KEY, KNOWN_HOSTS = STATE / "id_ed25519", STATE / "known_hosts"
CONSOLE = STATE / "console.log"
_SCRIPT = Path(__file__).with_name("boot.sh")
_DRIVER_FOLDERS = ("/usr/local/nvidia",)
"""Where machines whose image brings the driver have its files (container-optimised systems, GPU guests)."""

# The user's own: kernels made for GPU guests often have no bridge and no netfilter. What is configured on top must keep these.
_MASKED = ("console-getty.service", "getty@tty1.service", "systemd-udevd.service", "systemd-networkd.service", "ssh.socket")
_DAEMON_JSON = {"bridge": "none", "iptables": False, "ip6tables": False}


def create() -> None:
    """Unpacks the root file system and makes it the disk of a machine with a preinstalled driver. LabError without kit or driver."""
    archive = KIT / ROOT_ARCHIVE
    if not archive.exists():
        raise LabError(
            f"there is no {archive}: `python -m e2e kit FOLDER` makes a kit, and GPU_BRINGUP_KIT says where it lies here"
        )
    destroy()
    ROOT.mkdir(parents=True)
    run(["tar", "--extract", "--numeric-owner", "-C", str(ROOT), "-f", str(archive)], timeout_s=300)
    run(["cp", "-a", "/dev/null", "/dev/urandom", str(ROOT / "dev")])  # for what is run in it before it boots
    files = {
        "etc/hostname": f"{NAME}\n",
        "etc/hosts": f"127.0.0.1 localhost {NAME}\n",
        "etc/machine-id": "",
        "etc/ssh/sshd_config.d/50-cloud.conf": f"PasswordAuthentication no\nPort {SSH_PORT}\nListenAddress {ADDRESS}\n",
        f"etc/sudoers.d/90-{USER}": f"{USER} ALL=(ALL) NOPASSWD:ALL\n",
        "etc/docker/daemon.json": json.dumps(_DAEMON_JSON, indent=2) + "\n",
    }
    for name, text in files.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text)
    for unit in _MASKED:
        (ROOT / "etc/systemd/system" / unit).symlink_to("/dev/null")
    _in_root("useradd", "--create-home", "--shell", "/bin/bash", USER)
    _make_keys()
    _hand_in_driver()


def _make_keys() -> None:
    key = f"/home/{USER}/.ssh/id"
    _in_root("install", "-d", "-m", "700", "-o", USER, "-g", USER, f"/home/{USER}/.ssh")
    for path in ("/etc/ssh/ssh_host_ed25519_key", key):
        _in_root("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", NAME, "-f", path)
    shutil.move(f"{ROOT}{key}", SSH_KEY)
    shutil.move(f"{ROOT}{key}.pub", ROOT / f"home/{USER}/.ssh/authorized_keys")
    _in_root("chown", f"{USER}:", f"/home/{USER}/.ssh/authorized_keys")
    kind, public = (ROOT / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    KNOWN_HOSTS.write_text(f"[{ADDRESS}]:{SSH_PORT} {kind} {public}\n")


def _hand_in_driver() -> None:
    """Where an image that brings its driver would have it: libraries known to the linker, programs in the path."""
    folders = [folder for folder in _DRIVER_FOLDERS if Path(folder).is_dir()]
    libraries = [path for folder in folders for path in (f"{folder}/lib64", f"{folder}/lib") if Path(path).is_dir()]
    (ROOT / "etc/ld.so.conf.d/nvidia.conf").write_text("".join(f"{path}\n" for path in libraries))
    for folder in folders:
        for program in sorted(Path(folder, "bin").glob("nvidia-*")):
            (ROOT / "usr/bin" / program.name).symlink_to(program)


def start(timeout_s: float = 60) -> None:
    """Switches the host on and waits until sshd answers. LabError with what the console shows when it does not."""
    group = _group()
    cgroup.make(group)
    shown = [folder for folder in _DRIVER_FOLDERS if Path(folder).is_dir()]
    settings = {"HOST_ROOT": str(ROOT), "HOST_GROUP": str(group), "HOST_NAME": NAME, "HOST_SHOWN": " ".join(shown)}
    with CONSOLE.open("ab") as output:
        subprocess.run(
            ["setsid", "--fork", *cgroup.entering(cgroup.make(group / "loop"), [str(_SCRIPT), "loop"])],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **settings}, check=True, timeout=10,
        )  # fmt: skip
    _wait_for_sshd(timeout_s)
    run_on_host("systemctl is-system-running --wait || :", timeout_s=timeout_s)
    run_on_host("ldconfig")


def destroy() -> None:
    """Ends the host, and removes what it was made of."""
    cgroup.remove(_group())
    remove(STATE)


def run_on_host(command: str, timeout_s: float = 60) -> str:
    """What a shell command prints that root runs on the host. LabError when it fails or takes too long."""
    return run(["nsenter", "--target", _init_pid(), "--all", "--root", "--wd", "sh", "-c", command], timeout_s=timeout_s)


def _init_pid() -> str:
    """Of the host's systemd, as this machine counts."""
    for path in (_group() / "boot").rglob("cgroup.procs"):
        for pid in path.read_text().split():
            if Path(f"/proc/{pid}/status").read_text().split("NSpid:")[1].split()[1:2] == ["1"]:
                return pid
    raise LabError(f"the host does not run: see {CONSOLE}")


def _wait_for_sshd(timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((ADDRESS, SSH_PORT), timeout=1) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.1)
    said = CONSOLE.read_text(errors="replace").strip().splitlines()[-3:] if CONSOLE.exists() else []
    raise LabError(
        f"the host did not answer on port {SSH_PORT} within {timeout_s:.0f} s; its console ends with {said}: see {CONSOLE}"
    )


def _in_root(*argv: str) -> str:
    return run(["chroot", str(ROOT), *argv])


def _group() -> Path:
    return cgroup.mounted() / "gpu-bringup-hardware"
