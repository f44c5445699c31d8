"""Who a host is: its keys and names, and the user that may log in; what cloud-init sets on the first boot of a VM."""

from __future__ import annotations

import os
from pathlib import Path

from .command import run
from .errors import LabError
from .paths import STATE
from .rootfs import PASSWORD, USER

SSH_KEY = STATE / "id_ed25519"
"""Logs in to every host as USER."""

KNOWN_HOSTS = STATE / "known_hosts"


def make_keys(hosts: dict[str, str]) -> None:
    """The key to log in with, a key for each host, and the known_hosts file that names them. hosts: name -> address."""
    _make_key(SSH_KEY, "gpu-bringup-lab")
    lines = []
    for name, address in hosts.items():
        key = _host_key(name)
        _make_key(key, name)
        kind, public = key.with_suffix(".pub").read_text().split()[:2]
        lines.append(f"{address},{name} {kind} {public}\n")
    KNOWN_HOSTS.write_text("".join(lines))


def _host_key(name: str) -> Path:
    return STATE / "keys" / name


def _make_key(path: Path, comment: str) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])


def personalise(upper: Path, root: Path, name: str, machine_id: str, sudo_password: str | None) -> None:
    """Writes names, keys and the rule for sudo into the upper layer of a host that lies on root."""
    key = _host_key(name)
    put(upper, root, "etc/hostname", f"{name}\n")
    put(upper, root, "etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost ip6-localhost ip6-loopback\n")
    put(upper, root, "etc/machine-id", f"{machine_id}\n", mode=0o444)
    put(upper, root, "etc/resolv.conf", _name_servers())
    put(upper, root, "etc/ssh/ssh_host_ed25519_key", key.read_text(), mode=0o600)
    put(upper, root, "etc/ssh/ssh_host_ed25519_key.pub", key.with_suffix(".pub").read_text())
    authorized = put(upper, root, f"home/{USER}/.ssh/authorized_keys", SSH_KEY.with_suffix(".pub").read_text(), mode=0o600)
    owner = (root / "home" / USER).stat()
    os.chown(authorized, owner.st_uid, owner.st_gid)
    if sudo_password is None:
        put(upper, root, "etc/sudoers.d/90-cloud-init-users", f"{USER} ALL=(ALL) NOPASSWD:ALL\n", mode=0o440)
    elif sudo_password != PASSWORD:
        raise LabError(f"the user {USER} has one password on all root file systems, and host {name} wants another")


def put(upper: Path, root: Path, name: str, text: str, mode: int = 0o644) -> Path:
    """Writes a file into the upper layer of an overlay; its folders get the owner and mode of those below, which they hide."""
    for parent in reversed(Path(name).parents[:-1]):
        if not (upper / parent).exists():
            below = (root / parent).stat()
            (upper / parent).mkdir()
            os.chown(upper / parent, below.st_uid, below.st_gid)
            (upper / parent).chmod(below.st_mode & 0o7777)
    path = upper / name
    path.write_text(text)
    path.chmod(mode)
    return path


def _name_servers() -> str:
    """This machine's name servers; those behind a resolver on its loopback address, which hosts cannot reach."""
    text = Path("/etc/resolv.conf").read_text()
    behind = Path("/run/systemd/resolve/resolv.conf")
    return behind.read_text() if "nameserver 127." in text and behind.exists() else text
