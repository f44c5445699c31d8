"""tests/host: from a pyinfra inventory to how each host is reached. Nothing is connected to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Host, Inventory
from testinfra import host as testinfra

from bringup.errors import UserError
from bringup.settings import Settings
from tests.host.connection import Connections, problem
from tests.host.hosts import HostSpec, select, spec_of, ssh_config

CHECKOUT = Path(__file__).parents[1]


def the_host(name: str, data: dict[str, Any]) -> Host:
    return next(iter(Inventory(([(name, data)], {}))))


def test_ssh_host() -> None:
    data = {
        "ssh_hostname": "10.0.0.11",
        "ssh_user": "ubuntu",
        "ssh_port": 2222,
        "ssh_key": "~/keys/gpu",
        "ssh_known_hosts_file": "/etc/known",
        "ssh_strict_host_key_checking": "yes",
        "ssh_config_file": "/etc/jump",
        "ssh_key_password": "of the key",
        "_sudo": True,
        "_sudo_password": "of sudo",
        "gpu_memlock": 1024,
        "unrelated": object(),
    }
    spec = spec_of(the_host("gpu-1", data))
    assert spec == HostSpec(
        name="gpu-1",
        address="10.0.0.11",
        settings=Settings(memlock=1024),
        user="ubuntu",
        port=2222,
        key=Path("~/keys/gpu").expanduser(),
        known_hosts=Path("/etc/known"),
        strict="yes",
        config_file=Path("/etc/jump"),
        secret="of the key",
        sudo=True,
        sudo_password="of sudo",
    )
    assert spec.where == "gpu-1 (10.0.0.11)"
    assert "of sudo" not in repr(spec)
    assert "of the key" not in repr(spec)


def test_ssh_host_with_pyinfras_defaults() -> None:
    spec = spec_of(the_host("gpu-1.example.com", {}))
    assert spec == HostSpec("gpu-1.example.com", "gpu-1.example.com", Settings())
    assert spec.where == "gpu-1.example.com"
    assert spec.strict == "accept-new"
    assert spec.config_file == Path("~/.ssh/config").expanduser()


def test_this_machine() -> None:
    assert spec_of(the_host("@local", {"_sudo": True})) == HostSpec("@local", None, Settings(), sudo=True)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("@docker/debian", {}, "@docker/debian: only hosts behind SSH, and @local, can be tested"),
        ("gpu-1", {"gpu_reboots": "never"}, "gpu-1: unknown setting gpu_reboots; did you mean gpu_reboot?"),
    ],
)
def test_refused(name: str, data: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        spec_of(the_host(name, data))
    assert str(caught.value).startswith(says)


def test_limit_takes_groups_and_wildcards() -> None:
    inventory = Inventory((["a-1", "a-2", "b-1", "c"], {}), big=(["b-1"], {}))
    assert [each.name for each in select(inventory, ["a-*", "big"])] == ["a-1", "a-2", "b-1"]
    assert select(inventory, ["d"]) == []
    assert len(select(inventory, [])) == 4


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh on this machine")
def test_a_jump_host_gets_nothing_of_ours(tmp_path: Path) -> None:
    users = tmp_path / "users own"
    users.write_text("Host 10.0.0.*\n  ProxyJump bastion\n  Compression yes\nHost bastion\n  User jumper\n")
    spec = HostSpec(
        "gpu-1", "10.0.0.11", Settings(), user="ubuntu", port=2222, key=tmp_path / "50% key", strict="yes", config_file=users
    )
    file = tmp_path / "config"
    file.write_text(ssh_config(spec, tmp_path / "socket"))

    def options(address: str) -> list[str]:
        return subprocess.run(["ssh", "-G", "-F", file, address], capture_output=True, text=True, check=True).stdout.splitlines()

    ours = ["user ubuntu", "port 2222", "stricthostkeychecking true", f"controlpath {tmp_path}/socket", "batchmode yes"]
    assert not {*ours, "identitiesonly yes", "proxyjump bastion", "compression yes"} - set(options("10.0.0.11"))
    assert [each for each in options("10.0.0.11") if each.startswith("identityfile ")] == [f"identityfile {tmp_path}/50%% key"]
    assert "user jumper" in options("bastion")
    assert not set(ours) & set(options("bastion"))


def local(sudo_password: str | None) -> testinfra.Host:
    return Connections().testinfra_host(HostSpec("@local", None, Settings(), sudo=True, sudo_password=sudo_password))


def program(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a stand-in first in PATH."""
    (folder / name).write_text(f"#!/bin/sh\n{text}")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


ASKS = """
[ "$1$2$3" = "-S-p" ] || { echo "sudo: a password is required" >&2; exit 1; }
read -r given
[ "$given" = 'it'"'"'s $HOME' ] || { echo "sudo: 1 incorrect password attempt" >&2; exit 1; }
shift 3; exec "$@"
"""


def test_sudo_gets_the_password_and_the_command_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "sudo", ASKS, monkeypatch)
    assert local("it's $HOME").run("cat; echo %s", "a 'b'").stdout == "a 'b'\n"
    assert problem(local("wrong")) == "@local: root's rights cannot be had: sudo: 1 incorrect password attempt"
    assert problem(local(None)) == "@local: sudo asks for a password: set _sudo_password in the inventory"


def test_a_password_that_sudo_does_not_ask_for_reaches_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "sudo", 'shift 3; exec "$@"', monkeypatch)
    assert local("secret").run("cat").stdout == ""


def test_a_lost_connection_fails_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "ssh", "echo 'Connection timed out' >&2; exit 255", monkeypatch)
    host = Connections().testinfra_host(HostSpec("gpu-1", "10.0.0.11", Settings()))
    assert problem(host) == "gpu-1 (10.0.0.11) does not answer: Connection timed out"
    with pytest.raises(pytest.skip.Exception, match="the connection was lost in an earlier test"):
        host.run("true")


def collect(*arguments: str) -> tuple[int, str]:
    """The suite itself, without connecting: exit code, and what it printed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(CHECKOUT / "tests/host"),
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    return done.returncode, done.stdout + done.stderr


def test_every_test_for_every_host_and_image_with_group_data(tmp_path: Path) -> None:
    file = tmp_path / "fleet.py"
    file.write_text('gpus = ["gpu-1", "gpu-2"]\n')
    (tmp_path / "group_data").mkdir()
    (tmp_path / "group_data/gpus.py").write_text('gpu_images = ["auto", "example.com/a/b:1"]\n')
    code, said = collect("--inventory", str(file), "-k", "test_memlock_of_a_container or test_default_runtime", "-qq")
    assert code == 0, said
    assert "test_image.py: 4" in said
    assert "test_runtime.py: 2" in said


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        (None, [], "tests/host needs hosts: --inventory FILE, such as inventories/cluster.py"),
        (None, ["--inventory", "mistyped.py"], "--inventory mistyped.py: there is no such file"),
        ("hosts = []", [], "has no hosts"),
        ("hosts = ['a']", ["--limit", "b"], "has no hosts that match b"),
        ("hosts = [os.environ['X']]", [], "cannot be read: NameError: name 'os' is not defined"),
        ("import sys\nsys.exit(2)", [], "ended by itself: see what it printed"),
    ],
)
def test_wrong_use_gets_one_sentence(text: str | None, arguments: list[str], says: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "fleet.py").write_text(text)
        arguments = ["--inventory", str(tmp_path / "fleet.py"), *arguments]
    code, said = collect(*arguments)
    assert code == 4
    assert said.strip().startswith("ERROR: ")
    assert said.strip().endswith(says)
    assert len(said.strip().splitlines()) == 1
