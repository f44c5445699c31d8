"""Package sources: looked at before anything is changed, what clashes with them disabled, then added."""

from __future__ import annotations

from collections.abc import Iterator

from pyinfra import host, state
from pyinfra.api import QuoteString, StringCommand
from pyinfra.api.command import PyinfraCommand

from bringup.index import checked_index, checked_key, checked_stream, pick, pick_newest
from bringup.plan import step_function
from bringup.sources import without
from bringup.steps import provenance
from bringup.steps.sources import DISABLED, SETTINGS_FILE, found_clashes, settings_text
from bringup.steps.version_locks import allowed
from bringup.survey import Survey
from bringup.target import Repository, Target
from facts import live
from facts.packages import Index
from operations import dnf
from operations.files import write_bytes, write_file
from operations.guard import Commands, host_operation
from operations.index import read_index
from operations.needed import needed


@host_operation
def package_sources(target: Target) -> Commands:
    """A wrong key, a dead mirror or a branch that is not there fails the host here, where nothing was changed yet. Changes nothing."""
    yield from ()
    if not state.is_executing:
        return host.noop("looked at when the run begins")
    for source, packages in to_be_added(live.survey(), target):
        index = read_index(source, packages)
        checked_key(source, index["key"], index["key_problem"])
        checked_index(source, index["index_problem"])
        check_versions(target, source, index)
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


def check_versions(target: Target, source: Repository, index: Index) -> None:
    """Raises HostError where the source lacks what is wanted from it."""
    offered = allowed(live.survey(), index["versions"])
    if target.driver and source == target.driver.repository:
        pick(offered, target.driver.versioned, target.driver.wanted, source.url)
        if target.driver.stream:
            checked_stream(source, index["streams"], target.driver.stream)
    elif target.toolkit and source == target.toolkit.repository:
        pick_newest(offered, target.toolkit.packages, target.toolkit.floor, source.url)


@host_operation
def repository(step: str, target: Target, wanted: Repository | None, packages: tuple[str, ...]) -> Commands:
    """Add one of our package sources."""
    if needed(step, target) and wanted is not None:
        yield from add_source(target, wanted, packages)


def add_source(target: Target, wanted: Repository, packages: tuple[str, ...]) -> Iterator[PyinfraCommand]:
    """Key and index are read into a private folder first, so that nothing changes for a wrong one, or one without the packages.

    Raises HostError.
    """
    if not state.is_executing:  # nothing is fetched for a preview
        yield StringCommand("true")
        return
    index = read_index(wanted, packages)
    key = checked_key(wanted, index["key"], index["key_problem"])
    checked_index(wanted, index["index_problem"])
    check_versions(target, wanted, index)
    if wanted.family != "apt":
        yield from dnf.add_source(wanted, key)
        return
    yield write_bytes(wanted.keyring, key)
    yield write_file(wanted.sources_file, wanted.sources_text)


@host_operation
def clashing_sources(target: Target) -> Commands:
    """Disable entries of others for our sources, each kept beside it."""
    if needed("clashing-sources", target) is None:
        return
    files = dict(live.survey()["packages"]["repositories"])
    for clash in found_clashes(live.survey(), target):
        path, text = clash.path, files[clash.path]
        kept = QuoteString(path + DISABLED)
        rest = without(text, clash) if isinstance(text, str) else None
        noted = StringCommand("mkdir -p -m 755 /etc/gpu-bringup && printf '%s\\n'", QuoteString(path), ">>", provenance.DISABLED)
        yield StringCommand(noted, "&& { [ -e", kept, "] || cp -p", QuoteString(path), kept, "; }")
        if rest is None:
            yield StringCommand("rm -f", QuoteString(path))
        else:
            files[path] = rest
            yield write_file(path, rest)


@host_operation
def apt_settings(target: Target) -> Commands:
    """Our file in apt.conf.d."""
    if needed("apt-settings", target):
        yield write_file(SETTINGS_FILE, settings_text(live.survey(), target))
