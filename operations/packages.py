"""Packages, whatever the package manager: what driver, Docker and toolkit call, so that they need not know the family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyinfra.api import QuoteString, StringCommand
from pyinfra.api.command import PyinfraCommand

from bringup.steps.packages import to_hold
from bringup.target import Repository, Target
from facts import live
from facts.packages import Index
from operations import apt, dnf
from operations.guard import Commands, host_operation
from operations.needed import needed


def install(
    target: Target,
    packages: tuple[str, ...],
    ours: Repository | None,
    choose: Callable[[Index], Mapping[str, str]] | None,
    *,
    reinstall: bool = False,
) -> Iterator[PyinfraCommand]:
    """Install packages; with `choose`, exactly the versions that it picks from our repository's index. Our holds are released first.

    + reinstall: also those that are there, whose files are not
    """
    by = apt.install if target.family == "apt" else dnf.install
    yield from by(target, packages, ours, choose, reinstall=reinstall)


@host_operation
def package_holds(target: Target) -> Commands:
    """Hold the driver set and the toolkit: an unattended upgrade that splits driver and library ends every CUDA program."""
    if needed("package-holds", target) is None:
        return
    names = to_hold(live.survey(), target)
    if target.family == "apt":
        yield StringCommand("apt-mark hold", *(QuoteString(each) for each in names))
    else:
        yield from dnf.hold(target, names)
