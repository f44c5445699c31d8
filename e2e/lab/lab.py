"""The lab as a whole: up, load, status, down."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import cgroup, image, machine, network, registry, repository, rpm
from .command import remove, say
from .distros import USUAL, find_distro
from .errors import LabError
from .gpu import gpu_profile
from .host import Host, HostSpec
from .identity import KNOWN_HOSTS, SSH_KEY, make_keys
from .network import Network
from .paths import STATE
from .repository import Offer
from .rootfs import PASSWORD, USER, root_file_system

_LAB = STATE / "lab.json"
"""Describes a lab that is up; written last."""

_MADE = STATE / "made.json"
"""Says what down() has to look for; written before anything is made, removed last."""


def plan_hosts(count: int = 2, distro: str | None = None, gpu: str | None = None) -> list[HostSpec]:
    """What hosts to make: distributions, GPUs and sudo with and without a password alternate, unless one is asked for.

    LabError for a distribution or a profile that the lab does not know.
    """
    if distro is not None:
        find_distro(distro)
    if gpu is not None:
        gpu_profile(gpu)
    if not 1 <= count <= network.MAX_HOSTS:
        raise LabError(f"the lab cannot have {count} hosts: use a number from 1 to {network.MAX_HOSTS}")
    distros = [distro] if distro else list(USUAL)
    gpus = [gpu] if gpu else ["h200", "h200x8"]
    return [
        HostSpec(
            name=f"lab-{number}",
            number=number,
            distro=distros[(number - 1) % len(distros)],
            gpu=gpus[(number - 1) % len(gpus)],
            sudo_password=None if number % 2 else PASSWORD,
        )
        for number in range(1, count + 1)
    ]


@dataclass(frozen=True)
class Lab:
    """A lab that is up."""

    network: Network
    hosts: list[Host]

    @classmethod
    def up(cls, hosts: int = 2, distro: str | None = None, gpu: str | None = None) -> Lab:
        """Makes a lab and returns when all its hosts answer. LabError when one is up already or none can be; then nothing of it stays."""
        specs = plan_hosts(hosts, distro, gpu)
        machine.check_root()
        machine.check_packages(rpm.REQUIRED_PACKAGES if any(find_distro(spec.distro).family == "el" for spec in specs) else {})
        net = network.this_network()
        with _locked():
            _check_nothing_is_up(net)
            machine.check_namespaces()
            _write(_MADE, {"network": net.number})
            try:
                lab = cls(net, [Host(spec, net) for spec in specs])
                lab._make()
            except BaseException as problem:
                say("interrupted: removing what was made" if isinstance(problem, KeyboardInterrupt) else "removing what was made")
                _remove_all(net)
                raise
        return lab

    @classmethod
    def load(cls) -> Lab:
        """The lab that is up. LabError when there is none."""
        if not _LAB.exists():
            raise LabError("no lab is up: python -m e2e up")
        described = json.loads(_LAB.read_text())
        net = Network(described["network"])
        fields = ("name", "number", "distro", "gpu", "sudo_password")
        return cls(net, [Host(HostSpec(**{key: host[key] for key in fields}), net) for host in described["hosts"]])

    @staticmethod
    def down() -> bool:
        """Ends the lab, or what a killed up() left of it, and removes everything but the cache; False when there was nothing."""
        machine.check_root()
        with _locked():
            net = Network(json.loads(_MADE.read_text())["network"]) if _MADE.exists() else network.this_network()
            if not _MADE.exists() and not network.is_ours(net):
                return False
            _remove_all(net)
        return True

    def status(self) -> str:
        """One line for each host: what it is, and whether it answers."""
        lines = []
        for host in self.hosts:
            state = "off"
            if host.is_on():
                answer = host.run("cut -d. -f1 /proc/uptime", check=False, timeout_s=10)
                state = f"up for {answer.stdout.strip()} s" if answer.returncode == 0 else "on, but does not answer on SSH"
            sudo = "sudo asks" if host.spec.sudo_password else "sudo"
            lines.append(f"{host.name:8}{host.address:16}{host.spec.distro:11}{host.spec.gpu:15}{sudo:11}{state}\n")
        return "".join(lines)

    def host(self, name: str) -> Host:
        """The host of this name. LabError when there is none."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise LabError(f"the lab has no host {name!r}: it has {', '.join(host.name for host in self.hosts)}")

    def create_host(self, host: Host) -> None:
        """Makes one of the lab's hosts, fresh, and switches it on; does not wait for it. May be called again after host.destroy()."""
        host.create(root_file_system(host.spec.distro))
        host.power_on()

    def _make(self) -> None:
        net = self.network
        network.up(net)
        distros = {host.spec.distro for host in self.hosts}
        repository.remember_usual(Offer(distros=tuple(dict.fromkeys((*USUAL, *sorted(distros))))))
        packages, layout = self._build()
        make_keys({host.name: host.address for host in self.hosts})
        for host in self.hosts:
            say(f"{host.name}: {host.spec.distro}, GPU {host.spec.gpu}, {host.address}")
            self.create_host(host)
        # while the hosts boot
        repository.serve(net, packages)
        registry.serve(net)
        registry.push(net, layout, image.NAME, image.TAG)
        for host in self.hosts:
            host.wait()
        _write(_LAB, self._description(f"{registry.address(net)}/{image.NAME}@{image.digest(layout)}"))

    def _build(self) -> tuple[Path, Path]:
        """Builds what is not in the cache yet, side by side; returns the folders of the package repository and of the image."""
        with ThreadPoolExecutor() as pool:
            packages = pool.submit(repository.build_repositories, self.network)
            layout = pool.submit(image.build_image, self.network)
            roots = [pool.submit(root_file_system, distro) for distro in sorted({host.spec.distro for host in self.hosts})]
            try:
                for root in roots:
                    root.result()
                return packages.result(), layout.result()
            except BaseException:
                cgroup.remove(self.network.cgroup)  # ends the other builds, which the pool would wait for
                raise

    def _described(self, host: Host) -> dict[str, Any]:
        described = {**asdict(host.spec), "address": host.address, "user": USER}
        if find_distro(host.spec.distro).family == "el":
            own = repository.repositories(self.network, host.spec.distro)
            described["repositories"] = {name: asdict(offer) for name, offer in own.items()}
        return described

    def _description(self, image_reference: str) -> dict[str, Any]:
        return {
            "schema": 1,
            "network": self.network.number,
            "hosts": [self._described(host) for host in self.hosts],
            "ssh_key": str(SSH_KEY),
            "known_hosts": str(KNOWN_HOSTS),
            "repositories": {name: asdict(offer) for name, offer in repository.repositories(self.network).items()},
            "registry": registry.address(self.network),
            "image": image_reference,
        }


def _check_nothing_is_up(net: Network) -> None:
    if _LAB.exists():
        names = ", ".join(host["name"] for host in json.loads(_LAB.read_text())["hosts"])
        raise LabError(f"a lab is up already ({names}): python -m e2e status shows it, python -m e2e down ends it")
    if _MADE.exists() or network.is_ours(net):
        raise LabError("a lab was begun here and not finished: python -m e2e down removes what is left of it")
    if STATE.exists() and any(STATE.iterdir()):
        raise LabError(f"{STATE} holds files that are not the lab's: set GPU_BRINGUP_LAB to an empty folder")
    network.check_free(net)


def _remove_all(net: Network) -> None:
    cgroup.remove(net.cgroup)
    network.down(net)
    for path in STATE.iterdir():
        if path != _MADE:
            remove(path)
    _MADE.unlink(missing_ok=True)


def _write(path: Path, content: dict[str, Any]) -> None:
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(content, indent=1))
    scratch.rename(path)


@contextmanager
def _locked() -> Iterator[None]:
    """One `up` or `down` at a time. STATE is there inside, and is gone afterwards when it is empty.

    A lock on the folder itself: it needs no file, and goes with the process that holds it.
    """
    STATE.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(STATE, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"another process is making or removing the lab in {STATE}: wait for it, or interrupt it") from None
        try:
            yield
        finally:
            with suppress(OSError):
                STATE.rmdir()
    finally:
        os.close(descriptor)
