"""One throw-away host: made, switched on and off, reached over SSH, destroyed."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from . import cgroup, el, nspawn
from .command import remove, run
from .distros import find_distro
from .errors import LabError
from .gpu import gpu_profile, prepare_gpu
from .identity import KNOWN_HOSTS, SSH_KEY, personalise, put
from .network import Network
from .paths import STATE
from .repository import PORT as repository_port
from .rootfs import USER


@dataclass(frozen=True)
class HostSpec:
    """What a host is to be. number is 1, 2, ... and decides the address; sudo_password None means that sudo does not ask."""

    name: str
    number: int
    distro: str
    gpu: str
    sudo_password: str | None


@dataclass(frozen=True)
class Setup:
    """How a host's machine is put together; in the host's folder as host.json."""

    layers: list[str]
    """Folders below the host's upper layer, highest first; the last is the root file system."""
    arguments: list[str]
    """Further arguments for systemd-nspawn: the simulated GPU."""
    machine_id: str


@dataclass(frozen=True)
class Host:
    """A host by what it is; whether it exists and runs is read from the machine whenever it is asked.

    Its disk is an overlay: the root file system below, then what checkpoints have kept, then `upper` with what the host has written since.
    /var/lib/docker is a plain folder, since Docker cannot put its overlays on another one.
    """

    spec: HostSpec
    network: Network

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def address(self) -> str:
        return self.network.address(self.spec.number)

    @property
    def link(self) -> str:
        """The machine's end of the host's network card."""
        return self.network.link(self.spec.number)

    @property
    def folder(self) -> Path:
        return STATE / "hosts" / self.name

    @property
    def cgroup(self) -> Path:
        return self.network.cgroup / self.name

    @property
    def console(self) -> Path:
        """What the host has printed on its console, over all its boots."""
        return self.folder / "console.log"

    def create(self, root: Path) -> None:
        """Makes the host from a root file system, with the GPUs of its profile; it is off."""
        if self.folder.exists():
            raise LabError(f"host {self.name} is there already: destroy it first")
        for name in ("upper", "root", "docker", "checkpoints"):
            (self.folder / name).mkdir(parents=True)
        shutil.copymode(root, self.folder / "upper")
        (self.folder / "docker").chmod(0o710)
        shutil.copy(nspawn.SCRIPT, self.folder)
        hardware = prepare_gpu(gpu_profile(self.spec.gpu), self.folder / "gpu")
        setup = Setup([str(root)], hardware, uuid.uuid4().hex)
        personalise(self.folder / "upper", root, self.name, setup.machine_id, self.spec.sudo_password)
        if find_distro(self.spec.distro).family == "el":
            for name, text in el.host_files(self.network, repository_port).items():
                put(self.folder / "upper", root, name, text)
        self.write_setup(setup)

    def read_setup(self, folder: Path | None = None) -> Setup:
        """From the host's own folder, or from that of a checkpoint."""
        return Setup(**json.loads(((folder or self.folder) / "host.json").read_text()))

    def write_setup(self, setup: Setup, folder: Path | None = None) -> None:
        path = (folder or self.folder) / "host.json"
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(setup), indent=1))
        scratch.rename(path)

    def is_on(self) -> bool:
        return nspawn.is_running(self.cgroup)

    def power_on(self) -> None:
        """Switches the host on, without waiting for it to answer."""
        if self.is_on():
            raise LabError(f"host {self.name} is on already")
        setup = self.read_setup()
        cgroup.remove(self.cgroup)  # of a host that has switched itself off
        (self.folder / "stays-off").unlink(missing_ok=True)
        remove(self.folder / "work")
        (self.folder / "work").mkdir()
        environment = {
            "LAB_NAME": self.name,
            "LAB_FOLDER": str(self.folder),
            "LAB_LOWER": ":".join(setup.layers),
            "LAB_MACHINE_ID": setup.machine_id,
            "LAB_BRIDGE": self.network.bridge,
            "LAB_LINK": self.link,
            "LAB_MAC": self.network.mac(self.spec.number),
            "LAB_ADDRESS": self.address,
            "LAB_GATEWAY": self.network.gateway,
        }
        nspawn.start(self.folder / nspawn.SCRIPT.name, self.cgroup, self.console, environment, setup.arguments)

    def power_off(self) -> None:
        """A power cut: every process of the host is killed at once; what it had written to its disk stays.

        The cable goes first: a kernel that ends the killed processes would close their connections, and a host without power says nothing.
        """
        run(["ip", "link", "set", self.link, "down"], check=False)  # no card: it is off
        nspawn.cut_power(self.cgroup)

    def destroy(self) -> None:
        """Ends the host and removes all of it, checkpoints included; create() may make it again, with the same host key."""
        self.power_off()
        remove(self.folder)

    def wait(self, timeout_s: float = 60) -> None:
        """Waits until the user can log in over SSH. LabError with the console's last line when that takes too long or the host is off."""
        self._wait_for_boot("", timeout_s)

    def reboot(self, timeout_s: float = 90) -> None:
        """Asks the host to reboot, and waits until it answers again with another boot id."""
        before = self.boot_id()
        self.run("systemctl reboot", sudo=True, check=False)
        self._wait_for_boot(before, timeout_s)

    def boot_id(self) -> str:
        return self.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()

    def run(
        self, command: str, *, sudo: bool = False, check: bool = True, stdin: str = "", timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Runs a shell command line on the host over SSH, as its user or as root.

        LabError when it takes longer than timeout_s or, unless check is False, when it fails; exit code 255 is ssh's own.
        """
        if sudo and self.spec.sudo_password is None:
            command = f"sudo -n -- sh -c {shlex.quote(command)}"
        elif sudo:
            # -k: sudo asks every time, so that the first line of stdin is always the password
            command = f"sudo -k -S -p '' -- sh -c {shlex.quote(command)}"
            stdin = f"{self.spec.sudo_password}\n{stdin}"
        try:
            done = subprocess.run(
                [*self.ssh_command(), "-o", "BatchMode=yes", self.address, command],
                input=stdin, capture_output=True, text=True, errors="replace", timeout=timeout_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.name}: gave up on `{command}` after {timeout_s:.0f} s") from None
        if check and done.returncode:
            words = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[-1]
            raise LabError(f"{self.name}: `{command}` failed (exit {done.returncode}): {words}")
        return done

    def ssh_command(self) -> list[str]:
        """ssh with all that it needs to log in here, the host's key checked; the address comes after further options."""
        options = {
            "IdentityFile": str(SSH_KEY),
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(KNOWN_HOSTS),
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": "5",
            "ServerAliveInterval": "5",
            "ServerAliveCountMax": "3",
            "LogLevel": "ERROR",
            "User": USER,
        }
        return ["ssh", "-F", "none", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]

    def _wait_for_boot(self, not_boot_id: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0 and self.is_on():
            if self._sshd_answers():
                answer = self.run("cat /proc/sys/kernel/random/boot_id", check=False, timeout_s=max(left, 1))
                if answer.returncode == 0 and answer.stdout.strip() != not_boot_id:
                    return
            time.sleep(0.05)
        happened = f"did not answer on SSH within {timeout_s:.0f} s" if self.is_on() else "is switched off"
        lines = self.console.read_text(errors="replace").split("\n") if self.console.exists() else []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
        raise LabError(f"host {self.name} ({self.address}) {happened}; the last that it printed is {last!r}: see {self.console}")

    def _sshd_answers(self) -> bool:
        try:
            with socket.create_connection((self.address, 22), timeout=0.2) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False
