"""The one lab that the scenarios of a run share: made when first asked for, brought back to a checkpoint for each scenario."""

from __future__ import annotations

from pathlib import Path

from .lab import registry, repository, repository_faults, services
from .lab.checkpoint import checkpoint, checkpoints, restore
from .lab.command import remove
from .lab.gpu import GpuProfile, prepare_gpu
from .lab.host import Host
from .lab.lab import Lab
from .pyinfra_run import LAB_INVENTORY, Started

FRESH, CONVERGED = "fresh", "converged"
CONVERGE_S = 420
"""Longer than two hosts ever need from fresh to proven, on two cores."""


class SharedLab:
    """Two hosts: lab-1 (debian12, h200, sudo does not ask) and lab-2 (debian13, h200x8, sudo asks); or two of another distribution."""

    def __init__(self, folder: Path) -> None:
        """folder: for the transcript of a converge that no scenario asked for."""
        self._folder = folder
        self._lab: Lab | None = None
        self._distro: str | None = None  # of dressed hosts; None: the usual ones

    @property
    def is_up(self) -> bool:
        return self._lab is not None

    def fresh(self) -> Lab:
        """Hosts that nobody has touched."""
        return self._fresh(None)

    def dressed(self, distro: str) -> Lab:
        """The same for hosts that are dressed as another distribution (lab/distros.py). They take the place of the usual ones."""
        return self._fresh(distro)

    def _fresh(self, distro: str | None) -> Lab:
        if self._lab is not None and self._distro == distro:
            return self._back_to(self._lab, FRESH)
        Lab.down()  # other hosts, or what a killed run of the scenarios, or --keep, has left
        self._lab, self._distro = None, distro
        self._lab = Lab.up(distro=distro)
        self._keep_as(self._lab, FRESH)
        return self._lab

    def converged(self) -> Lab:
        """Hosts that gpu_host.py has made and proven. Raises Failed when it cannot."""
        if self._lab is not None and self._distro is None and CONVERGED in checkpoints(self._lab.hosts[0]):
            return self._back_to(self._lab, CONVERGED)
        lab = self.fresh()
        run = Started(["-y", LAB_INVENTORY, "deploys/gpu_host.py"], self._folder / "converge.log").wait(CONVERGE_S)
        run.expect_exit(0).expect_proven(*(host.name for host in lab.hosts))
        self.keep_converged()
        return lab

    def keep_converged(self) -> None:
        """The hosts as they are now are the converged ones, for this run and its other scenarios."""
        if self._lab is not None and self._distro is None and CONVERGED not in checkpoints(self._lab.hosts[0]):
            self._keep_as(self._lab, CONVERGED)

    def down(self) -> None:
        if self._lab is not None:
            Lab.down()
            self._lab = None

    def _keep_as(self, lab: Lab, name: str) -> None:
        for host in lab.hosts:
            checkpoint(host, name)
        for host in lab.hosts:
            wait_for_boot(host)

    def _back_to(self, lab: Lab, name: str) -> Lab:
        start_services(lab)
        repository_faults.heal(lab.network)  # what a scenario broke and did not mend is no fault of the next one
        for host in lab.hosts:
            restore(host, name)
        for host in lab.hosts:
            wait_for_boot(host)
        return lab


def wait_for_boot(host: Host, timeout_s: float = 60) -> None:
    """Until the host answers and has started all that it starts at boot, Docker included. LabError when that takes too long."""
    host.wait(timeout_s)
    host.run("systemctl is-system-running --wait || :", timeout_s=timeout_s)


def start_services(lab: Lab) -> None:
    """The package repositories and the registry, where a scenario has stopped them."""
    if not services.is_running(lab.network, repository.SERVICE):
        repository.serve(lab.network, repository.build_repositories(lab.network))
    if not services.is_running(lab.network, registry.SERVICE):
        registry.serve(lab.network)


def change_gpu(host: Host, profile: GpuProfile) -> None:
    """Power off, other hardware into the host, power on. To be undone by who called it: it is not part of a checkpoint."""
    host.power_off()
    remove(host.folder / "gpu")
    prepare_gpu(profile, host.folder / "gpu")
    host.power_on()
    wait_for_boot(host)
