"""All package sources that a run will need, looked at before it changes anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyinfra import host, state

from bringup.index import checked_index, checked_key, pick, pick_newest
from bringup.plan import step_function
from bringup.survey import Survey
from bringup.target import Repository, Target
from facts import live
from operations import apt
from operations.guard import Commands, host_operation


@host_operation
def package_sources(target: Target) -> Commands:
    """A wrong key, a dead mirror or a branch that is not there fails the host here, where nothing was changed yet. Changes nothing."""
    yield from ()
    if not state.is_executing:
        return host.noop("looked at when the run begins")
    for source, packages in to_be_added(live.survey(), target):
        index = apt.read_index(source, packages)
        checked_key(source, index["key"], index["key_problem"])
        checked_index(source, index["index_problem"])
        check_versions(target, source, index["versions"])
    host.noop("can be used")


def to_be_added(survey: Survey, target: Target) -> Iterator[tuple[Repository, tuple[str, ...]]]:
    """Those that a step of this run will add, each with the packages that are wanted from it."""
    driver, toolkit, docker = target.driver, target.toolkit, target.docker
    if driver and driver.repository and step_function("driver-repository")(survey, target):
        yield driver.repository, driver.packages
    if toolkit and step_function("toolkit-repository")(survey, target):
        yield toolkit.repository, toolkit.packages
    if docker.repository and step_function("docker-repository")(survey, target):
        yield docker.repository, docker.packages


def check_versions(target: Target, source: Repository, offered: Mapping[str, list[str]]) -> None:
    """Raises HostError where the source lacks what is wanted from it."""
    if target.driver and source == target.driver.repository:
        pick(offered, target.driver.packages, target.driver.wanted, source.url)
    elif target.toolkit and source == target.toolkit.repository:
        pick_newest(offered, target.toolkit.packages, target.toolkit.floor, source.url)
