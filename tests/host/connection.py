"""testinfra backends for the hosts of an inventory: SSH over one shared connection, or this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.backend.local import LocalBackend
from testinfra.backend.ssh import SshBackend
from testinfra.host import Host
from typing_extensions import override

from tests.host.hosts import HostSpec, ssh_config

LIMIT_S = 240  # one command; the longest starts a container and imports torch from a cold disk
ASKPASS = '#!/bin/sh\nprintf "%s\\n" "$GPU_BRINGUP_SSH_SECRET"\n'


class Sudo(BaseBackend):  # type: ignore[misc]
    """A deadline for every command; sudo gets its password on standard input, and the command never sees that."""

    def of(self, spec: HostSpec, environment: dict[str, str]) -> Host:
        """Finish: testinfra fixes the arguments of __init__."""
        self.spec, self.environment = spec, environment
        self._encoding = "UTF-8"  # testinfra would ask the host's Python, which need not be there
        host = Host(self)
        self.set_host(host)
        return host

    @override
    def get_sudo_command(self, command: str, sudo_user: str | None) -> str:
        flags = "-S -p ''" if self.spec.sudo_password else "-n"  # -n: never ask, fail
        user = self.quote("-u %s ", sudo_user) if sudo_user else ""
        return f"sudo {flags} {user}" + str(self.quote("/bin/sh -c %s", f"exec </dev/null\n{command}"))

    @override
    def run_local(self, command: str, *args: str) -> CommandResult:
        command = self.quote(command, *args)
        given = f"{self.spec.sudo_password}\n" if self.spec.sudo_password else ""
        process = subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # no terminal to ask at, and one group to end
            env={**os.environ, **self.environment},
        )
        try:
            out, err = process.communicate(given.encode(), timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            pytest.fail(f"{self.spec.where}: no end of this command after {LIMIT_S} s: {command}", pytrace=False)
        return self.result(process.returncode, command.encode(), out, err)


class Local(Sudo, LocalBackend):  # type: ignore[misc]
    """This machine."""


class Ssh(Sudo, SshBackend):  # type: ignore[misc]
    """testinfra's own, which after a lost connection fails once and then skips, instead of waiting again and again."""

    lost = False

    @override
    def run_ssh(self, command: str) -> CommandResult:
        if self.lost:
            pytest.skip(f"{self.spec.where}: the connection was lost in an earlier test")
        try:
            return super().run_ssh(command)
        except RuntimeError as error:  # ssh's exit status 255
            self.lost = True
            said = error.args[0].stderr.strip().splitlines() or ["ssh failed without a word"]
            pytest.fail(f"{self.spec.where} does not answer: {said[-1]}", pytrace=False)


class Connections:
    """All connections of a test run; `close` ends them and removes their files."""

    def __init__(self) -> None:
        # Not pytest's tmp_path: the path of a socket may have about 90 characters
        self.folder = tempfile.TemporaryDirectory(prefix="gb-")
        self.ssh: list[list[str]] = []  # how each is reached

    def testinfra_host(self, spec: HostSpec) -> Host:
        """Does not connect yet."""
        if spec.address is None:
            return Local(sudo=spec.sudo).of(spec, {})
        folder = Path(self.folder.name)
        number = len(self.ssh)
        configuration = folder / f"config{number}"
        configuration.write_text(ssh_config(spec, folder / f"c{number}"), encoding="utf-8")
        self.ssh.append(["ssh", "-F", str(configuration), spec.address])
        address = f"[{spec.address}]" if ":" in spec.address else spec.address
        backend = Ssh(address, ssh_config=str(configuration), controlpersist=0, sudo=spec.sudo)
        return backend.of(spec, self.askpass(spec.secret) if spec.secret else {})

    def askpass(self, secret: str) -> dict[str, str]:
        """How ssh gets a password without a terminal: from a program, which reads it from the environment."""
        program = Path(self.folder.name) / "askpass"
        program.write_text(ASKPASS, encoding="utf-8")
        program.chmod(0o700)
        return {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "GPU_BRINGUP_SSH_SECRET": secret}

    def close(self) -> None:
        for ssh in self.ssh:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run([*ssh, "-O", "exit"], capture_output=True, timeout=10, check=False)
        self.folder.cleanup()


def problem(host: Host) -> str | None:
    """Connect. Why nothing can be tested on this host, in one sentence, or None."""
    spec: HostSpec = host.backend.spec
    try:
        done = host.run("id -u")
    except pytest.fail.Exception as failure:
        return str(failure)
    said = (done.stderr.strip().splitlines() or [""])[-1]
    if done.rc != 0 and "password" in said and not spec.sudo_password:
        return f"{spec.where}: sudo asks for a password: set _sudo_password in the inventory"
    if done.rc != 0:
        return f"{spec.where}: root's rights cannot be had: {said or f'exit {done.rc}'}"
    if done.stdout.strip() != "0":
        return f"{spec.where}: these tests need root's rights: set _sudo = True in the inventory"
    return None
