"""The package manager of Debian and Ubuntu: locks are waited for, interrupted work is finished, foreign sources are left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal
from weakref import WeakKeyDictionary, WeakSet

import gevent
from pyinfra import logger, state
from pyinfra.api import FunctionCommand, Host, QuoteString, State, StringCommand
from pyinfra.api.command import PyinfraCommand

from bringup.errors import HostError
from bringup.index import reason
from bringup.sources import broken_files
from bringup.steps import provenance
from bringup.steps.packages import half_configured
from bringup.target import Repository, Target
from bringup.transactions import refusal_of_kernels
from facts import live
from facts.packages import Index, PackageLocks
from operations import shell
from operations.apt_scripts import CONFIGURE, MAKE_VIEW, RETRYING, VIEW
from operations.files import note
from operations.guard import Commands, host_operation
from operations.index import UPDATE_TIMEOUT_S, read_index
from operations.needed import needed
from operations.record import RUN, report_problem

INSTALL_TIMEOUT_S = 3600  # a DKMS build and a slow mirror together
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

_viewing: WeakSet[Host] = WeakSet()
_updated: WeakKeyDictionary[Host, bool] = WeakKeyDictionary()


@host_operation
def package_manager(target: Target) -> Commands:
    """Finish what an interrupted dpkg left, after cloud-init and whoever holds its locks. Waiting changes nothing."""
    if state.is_executing:
        _wait_for_cloud_init(target.lock_timeout_s)
        if live.survey()["packages"]["locks"]:
            wait_for_locks(target.lock_timeout_s)
            live.survey(fresh=True)
    if needed("package-manager", target):
        yield from locks_free(target.lock_timeout_s)
        unfinished = (QuoteString(each) for each in half_configured(live.survey(), target))
        yield StringCommand("sh", "-c", QuoteString(CONFIGURE), "sh", *unfinished, _timeout=INSTALL_TIMEOUT_S)


def _wait_for_cloud_init(timeout_s: int) -> None:
    """Until it is done; that it was not all well with it (its exit 2) is no failure of ours. Raises HostError."""
    host = live.current_host()
    waited = 0
    while live.survey(fresh=waited > 0)["cloud_init"] == "running":
        if waited >= timeout_s:
            raise HostError(
                f"cloud-init still runs after {timeout_s} s: see `cloud-init status --long`, or raise gpu_lock_timeout"
            )
        host.log(f"waiting for cloud-init ({timeout_s - waited} s left)", logger.info)
        gevent.sleep(10)
        waited += 10


def wait_for_locks(timeout_s: int) -> None:
    """The same as `locks_free`, for an operation that changes nothing. Raises HostError."""
    host = live.current_host()
    if not _wait_for_locks(host.state, host, timeout_s):
        raise HostError("the package manager stayed locked")


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


def apt_get(*arguments: str, view: tuple[str, ...] = (), fragile: Iterable[str] = (), way_out: str = "") -> StringCommand:
    """`apt-get` without questions; passing faults are tried again, and a failed DKMS build is named by its first error.

    + fragile: packages that are removed again where their kernel module does not compile, so that apt can be used after it
    + way_out: what is then said to help
    """
    command = ("apt-get", *OPTIONS, *view, "-o", "DPkg::Lock::Timeout=300", *arguments)
    quoted = (QuoteString(each) for each in (" ".join(fragile), way_out, *command))
    return StringCommand("sh", "-c", QuoteString(RETRYING), "sh", *quoted, _timeout=INSTALL_TIMEOUT_S)


def view_options(host: Host) -> tuple[str, ...]:
    """Options that keep apt off source files that it could not read; none where there are none."""
    return ("-o", f"Dir::Etc::sourceparts={VIEW}") if host in _viewing else ()


def mark(action: Literal["hold", "unhold"], names: Iterable[str]) -> Iterator[PyinfraCommand]:
    """`apt-mark`, which reads the package sources, too."""
    yield from _viewed()
    yield StringCommand("apt-mark", *view_options(live.current_host()), action, *(QuoteString(each) for each in names))


def remove(names: Iterable[str], kept: Iterable[str]) -> Iterator[PyinfraCommand]:
    """Packages are purged; of those in `kept`, the settings and data stay."""
    yield from _viewed()
    for action, those in (("remove", list(kept)), ("purge", list(names))):
        if those:
            yield apt_get(action, *those, view=view_options(live.current_host()))


def fresh_index(target: Target, ours: tuple[Repository, ...] = ()) -> Iterator[PyinfraCommand]:
    """Package lists of today, once a run. A broken foreign source does not stop us, and is reported; an error in one of ours does."""
    yield from locks_free(target.lock_timeout_s)
    current = live.current_host()
    yield from _viewed()
    if not _updated.get(current):
        yield FunctionCommand(_update_all, (), {}, _timeout=UPDATE_TIMEOUT_S + 60)
        _updated[current] = True
    for each in ours:  # apt exits 0 on a bad key while old lists exist: -eany
        strict = ("update", "-eany", "-o", f"Dir::Etc::sourcelist={each.sources_file}", "-o", "Dir::Etc::sourceparts=-")
        yield apt_get(*strict, "-o", "APT::Get::List-Cleanup=0")


def _viewed() -> Iterator[PyinfraCommand]:
    """Where apt cannot read a source file, a folder of links to those that it can: the others are their owner's, and stay as they are.

    Made every time: a source of ours may have come since.
    """
    current = live.current_host()
    broken = broken_files(live.survey()["packages"]["repositories"])
    if not broken:
        return
    names = [each.path.rsplit("/", 1)[-1] for each in broken]
    for each in broken:
        remark(
            current,
            f"{each.path} line {each.line} is no package source ({each.text!r}): apt on this host refuses everything until it is mended",
        )
    yield StringCommand("sh", "-c", QuoteString(MAKE_VIEW), "sh", *(QuoteString(each) for each in names))
    _viewing.add(current)


def _update_all(state: State, host: Host) -> bool:
    """All sources; what could not be read is remarked, and is nobody's failure here."""
    view = view_options(host)
    _, said = shell.run(host, RETRYING, "", "", "apt-get", "-q", *view, "update", timeout_s=UPDATE_TIMEOUT_S)
    errors = [line.strip() for line in said.splitlines() if line.startswith(("E: ", "Err:", "W: "))]
    if errors:
        remark(host, f"some package sources could not be read: {reason(said)}")
    return True


def remark(host: Host, text: str) -> None:
    """Something that people should know, in the host's report; no failure."""
    result = RUN.of(host.name)
    if text not in result.notes:
        result.notes.append(text)
        host.log(text, logger.warning)


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
    """Install packages; with `choose`, exactly the versions that it picks from our repository's index. Held ones are released first.

    + others: what is there and may have to change with them; `choose` sees their versions, too
    + reinstall: also those that are there, whose files are not
    + way_out: of packages with a kernel module: what helps where it does not compile, and they are removed
    """
    if not state.is_executing:
        yield StringCommand("true")
        return
    names = list(packages)
    if ours is not None and choose is not None:
        chosen = choose(read_index(ours, (*packages, *others)))
        names = [f"{name}={version}" for name, version in chosen.items()] + [each for each in packages if each not in chosen]
    yield from fresh_index(target, (ours,) if ours else ())
    held = [
        each for each in (*packages, *others) if (found := live.survey()["packages"]["installed"].get(each)) and found["held"]
    ]
    if held:
        yield from mark("unhold", held)
    again = ("--reinstall",) if reinstall else ()
    wanted = ("install", "--no-install-recommends", "--allow-downgrades", *again, *names)
    yield from _remember_new(packages)
    view = view_options(live.current_host())
    # What cannot be resolved fails here, before anything is unpacked; so does a driver that would bring another kernel. Headers may: then
    # the module is built for it, too.
    kernel = live.survey()["kernel"] if choose is not None else None
    yield FunctionCommand(_try, (kernel, (*view, "--simulate", *wanted)), {}, _timeout=UPDATE_TIMEOUT_S + 60)
    yield apt_get(*wanted, view=view, fragile=packages if way_out else (), way_out=way_out)


def _try(state: State, host: Host, kernel: str | None, arguments: tuple[str, ...]) -> bool:
    done, said = shell.run(host, RETRYING, "", "", "apt-get", *OPTIONS, *arguments, timeout_s=UPDATE_TIMEOUT_S)
    problem = (refusal_of_kernels(said, kernel) if kernel else None) if done else reason(said)
    if problem:
        report_problem(host, problem)
    return problem is None


def _remember_new(packages: tuple[str, ...]) -> Iterator[PyinfraCommand]:
    """What was not there before we came is ours to remove again (deploys/undo.py); noted before it is installed."""
    there, ours = live.survey()["packages"]["installed"], live.survey()["packages"]["ours"]
    yield from note(provenance.INSTALLED, [each for each in packages if each not in there and each not in ours])
