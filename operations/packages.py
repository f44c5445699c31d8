"""Packages, whatever the package manager: what driver, Docker and toolkit call, so that they need not know the family."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyinfra import state
from pyinfra.api import StringCommand
from pyinfra.api.command import PyinfraCommand

from bringup.steps import provenance
from bringup.steps.packages import to_hold, to_release, unheld
from bringup.target import Repository, Target
from facts import live
from facts.packages import Index
from operations import apt, dnf
from operations.files import note, write_file
from operations.guard import Commands, host_operation
from operations.needed import needed


def install(
    target: Target,
    packages: tuple[str, ...],
    ours: Repository | None,
    choose: Callable[[Index], Mapping[str, str]] | None,
    *,
    others: tuple[str, ...] = (),
    reinstall: bool = False,
    way_out: str = "",
) -> Iterator[PyinfraCommand]:
    """Install packages; with `choose`, exactly the versions that it picks from our repository's index. Our holds are released first.

    + others: what is there and may have to change with them; `choose` sees their versions, too
    + reinstall: also those that are there, whose files are not
    + way_out: what helps where a kernel module of theirs does not compile
    """
    by = apt.install if target.family == "apt" else dnf.install
    yield from by(target, packages, ours, choose, others=others, reinstall=reinstall, way_out=way_out)


def remove(target: Target, names: list[str]) -> Iterator[PyinfraCommand]:
    """Packages go, their settings stay; held ones are released first."""
    if target.family != "apt":
        yield from dnf.remove(tuple(names), (), None)
        return
    there = live.survey()["packages"]["installed"]
    if held := [each for each in names if there[each]["held"]]:
        yield from apt.mark("unhold", held)
    yield from apt.remove((), kept=names)


@host_operation
def package_holds(target: Target) -> Commands:
    """Hold the driver set and the toolkit: an unattended upgrade that splits driver and library ends every CUDA program.

    What we held and is no longer to be held is released. What is ours is noted before it is held.
    """
    if needed("package-holds", target) is None:
        return
    if not state.is_executing:
        yield StringCommand("true")
        return
    survey = live.survey()
    names, released = to_hold(survey, target), to_release(survey, target)
    free, ours = unheld(survey, names), survey["packages"]["held_by_us"]
    if free:
        yield from note(provenance.HELD, [each for each in free if each not in ours])
        yield from apt.mark("hold", names) if target.family == "apt" else dnf.hold(target, names)
    if released:
        yield from apt.mark("unhold", released) if target.family == "apt" else dnf.release(released)
        kept = dict.fromkeys(each for each in (*ours, *free) if each not in released)
        yield write_file(provenance.HELD, "".join(f"{each}\n" for each in kept))
