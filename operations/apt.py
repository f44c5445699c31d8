"""The package manager of Debian and Ubuntu: locks are waited for, interrupted work is finished, foreign sources are left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from weakref import WeakKeyDictionary

import gevent
from pyinfra import logger, state
from pyinfra.api import FunctionCommand, Host, QuoteString, State, StringCommand
from pyinfra.api.command import PyinfraCommand

from bringup.errors import HostError
from bringup.index import checked_index, checked_key
from bringup.target import Repository, Target
from facts import live
from facts.packages import Index, PackageLocks, RepositoryIndex
from operations.files import write_bytes, write_file
from operations.guard import Commands, host_operation
from operations.needed import needed
from operations.record import report_problem

INSTALL_TIMEOUT_S = 3600  # a DKMS build and a slow mirror together
UPDATE_TIMEOUT_S = 600
# noninteractive; the user's configuration files and running services are left as they are by package tools
ENVIRONMENT = "DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 LC_ALL=C"
OPTIONS = (
    "-q",
    "-y",
    "-o",
    "Dpkg::Options::=--force-confold",
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Acquire::Retries=3",
)

_updated: WeakKeyDictionary[Host, bool] = WeakKeyDictionary()


@host_operation
def package_manager(target: Target) -> Commands:
    """Finish what an interrupted dpkg left, after whoever holds its locks."""
    if needed("package-manager", target):
        yield from locks_free(target.lock_timeout_s)
        yield StringCommand(ENVIRONMENT, "dpkg --configure -a --force-confold --force-confdef", _timeout=INSTALL_TIMEOUT_S)


def locks_free(timeout_s: int) -> Iterator[PyinfraCommand]:
    """Wait until nobody holds a lock of the package manager, and say who does meanwhile. The holder is never killed."""
    yield FunctionCommand(_wait_for_locks, (timeout_s,), {}, _timeout=timeout_s + 60)


def _wait_for_locks(state: State, host: Host, timeout_s: int) -> bool:
    waited, step_s = 0, 2
    while True:
        holders = host.get_fact(PackageLocks, _ignore_errors=True)
        if not holders:
            return True
        who = f"{holders[0]['command']} (process {holders[0]['pid']}) holds {holders[0]['file']}"
        if waited >= timeout_s:
            report_problem(host, f"{who} after {timeout_s} s of waiting: see what it does, or raise gpu_lock_timeout")
            return False
        if waited % 10 == 0:
            host.log(f"waiting: {who} ({timeout_s - waited} s left)", logger.info)
        gevent.sleep(step_s)
        waited += step_s


@host_operation
def repository(step: str, target: Target, wanted: Repository | None, packages: tuple[str, ...]) -> Commands:
    """Add one of our package sources."""
    if needed(step, target) and wanted is not None:
        yield from add_source(wanted, packages)


def add_source(wanted: Repository, packages: tuple[str, ...]) -> Iterator[PyinfraCommand]:
    """Key and index are read into a private folder first, so that nothing changes for a wrong one. Raises HostError."""
    if not state.is_executing:  # nothing is fetched for a preview
        yield StringCommand("true")
        return
    index = read_index(wanted, packages)
    key = checked_key(wanted, index["key"], index["key_problem"])
    checked_index(wanted, index["index_problem"])
    yield write_bytes(wanted.keyring, key)
    yield write_file(wanted.sources_file, wanted.sources_text)


def read_index(wanted: Repository, packages: tuple[str, ...]) -> Index:
    """The source's key and the versions of the packages in it, from a private read. Raises HostError."""
    index = live.current_host().get_fact(
        RepositoryIndex,
        url=wanted.url,
        suite=wanted.suite,
        component=wanted.component,
        key_url=wanted.key_url,
        packages=list(packages),
        _ignore_errors=True,
        _timeout=UPDATE_TIMEOUT_S,
    )
    if not index:
        raise HostError(f"the repository {wanted.url} could not be looked at: the lines above say why")
    return index


def apt_get(*arguments: str) -> StringCommand:
    """`apt-get` without questions. Locks of other processes are waited for by apt itself as far as it can (DPkg::Lock::Timeout)."""
    quoted = (QuoteString(each) for each in (*OPTIONS, "-o", "DPkg::Lock::Timeout=300", *arguments))
    return StringCommand(ENVIRONMENT, "apt-get", *quoted, _timeout=INSTALL_TIMEOUT_S)


def fresh_index(target: Target, ours: tuple[Repository, ...] = ()) -> Iterator[PyinfraCommand]:
    """Package lists of today, once a run. A broken foreign source does not stop us; an error in one of ours does."""
    yield from locks_free(target.lock_timeout_s)
    current = live.current_host()
    if not _updated.get(current):
        yield StringCommand(
            ENVIRONMENT, "apt-get -q update || echo 'some package sources could not be read' >&2", _timeout=UPDATE_TIMEOUT_S
        )
        _updated[current] = True
    for each in ours:  # apt exits 0 on a bad key while old lists exist: -eany
        strict = ("update", "-eany", "-o", f"Dir::Etc::sourcelist={each.sources_file}", "-o", "Dir::Etc::sourceparts=-")
        yield apt_get(*strict, "-o", "APT::Get::List-Cleanup=0")


def install(
    target: Target,
    packages: tuple[str, ...],
    ours: Repository | None,
    choose: Callable[[Index], Mapping[str, str]] | None,
    *,
    reinstall: bool = False,
) -> Iterator[PyinfraCommand]:
    """Install packages; with `choose`, exactly the versions that it picks from our repository's index. Held ones are released first.

    + reinstall: also those that are there, whose files are not
    """
    if not state.is_executing:
        yield StringCommand("true")
        return
    names = list(packages)
    if ours is not None and choose is not None:
        chosen = choose(read_index(ours, packages))
        names = [f"{name}={version}" for name, version in chosen.items()]
    yield from fresh_index(target, (ours,) if ours else ())
    held = [each for each in packages if (found := live.survey()["packages"]["installed"].get(each)) and found["held"]]
    if held:
        yield StringCommand("apt-mark unhold", *(QuoteString(each) for each in held))
    again = ("--reinstall",) if reinstall else ()
    yield apt_get("install", "--no-install-recommends", "--allow-downgrades", *again, *names)


@host_operation
def package_holds(target: Target) -> Commands:
    """Hold the driver set and the toolkit: an unattended upgrade that splits driver and library ends every CUDA program."""
    if needed("package-holds", target) is None:
        return
    ours = [*(target.driver.packages if target.driver and target.driver.hold else ())]
    ours += [*(target.toolkit.packages if target.toolkit and target.toolkit.hold else ())]
    there = live.survey()["packages"]["installed"]
    yield StringCommand("apt-mark hold", *(QuoteString(each) for each in ours if each in there or not state.is_executing))
