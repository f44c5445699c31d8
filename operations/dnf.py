"""The package manager of Red Hat's family: exact versions from one source, module streams, version locks; nothing of others is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyinfra import state
from pyinfra.api import FunctionCommand, Host, QuoteString, State, StringCommand
from pyinfra.api.command import PyinfraCommand

from bringup import dnf_output, version_locks
from bringup.errors import HostError
from bringup.openpgp import armor
from bringup.steps import packages as steps
from bringup.steps import provenance
from bringup.steps.version_locks import allowed, locks, ours, to_lift
from bringup.survey import Survey, unreadable
from bringup.target import Repository, Target
from bringup.transactions import refusal_of_kernels
from facts import live
from facts.packages import Index
from operations import shell
from operations.apt import INSTALL_TIMEOUT_S, locks_free, remark
from operations.dnf_scripts import LIFT, OPTIONS, RETRYING, WITHOUT_REPOSITORIES
from operations.files import note, write_bytes, write_file
from operations.index import read_index
from operations.record import report_problem

LOCKS_PLUGIN = "python3-dnf-plugin-versionlock"
MODULE = "nvidia-driver"


def dnf(*arguments: str, way_out: str = "") -> StringCommand:
    """`dnf` without questions; passing faults are tried again, and a failed DKMS build is named by its first error.

    + way_out: what is then said to help
    """
    quoted = (QuoteString(each) for each in (way_out, "dnf", *OPTIONS, *arguments))
    return StringCommand("sh", "-c", QuoteString(RETRYING), "sh", *quoted, _timeout=INSTALL_TIMEOUT_S)


def add_source(wanted: Repository, key: bytes) -> Iterator[PyinfraCommand]:
    """The key, known to rpm, and the repository's file. What dnf remembers of an older source under this name is forgotten."""
    path = QuoteString(wanted.keyring)
    yield write_bytes(wanted.keyring, armor(key))
    yield from remember((steps.key_package(wanted),))
    yield StringCommand("rpm --import", path)
    yield write_file(wanted.sources_file, wanted.sources_text)
    yield dnf("-q", f"--repo=gpu-bringup-{wanted.name}", "clean", "metadata")


def enable_stream(target: Target) -> Iterator[PyinfraCommand]:
    """NVIDIA's module stream of the wanted branch in place of another one."""
    stream = target.driver.stream if target.driver else None
    if stream is None or not target.driver or not target.driver.repository:
        return
    only = f"--repo=gpu-bringup-{target.driver.repository.name}"
    yield dnf("-q", only, "module", "reset", MODULE)
    yield dnf("-q", only, "module", "enable", stream)


def install(
    target: Target,
    packages: tuple[str, ...],
    source: Repository | None,
    choose: Callable[[Index], Mapping[str, str]] | None,
    *,
    others: tuple[str, ...] = (),
    reinstall: bool = False,
    way_out: str = "",
) -> Iterator[PyinfraCommand]:
    """Install packages; with `choose`, exactly the versions that it picks from our repository's index, as far as foreign locks allow.

    + others: what is there and may have to change with them; `choose` sees their versions, too
    + reinstall: also those that are there, whose files are not
    + way_out: what helps where a kernel module of theirs does not compile
    """
    if not state.is_executing:
        yield StringCommand("true")
        return
    names = list(packages)
    if source is not None and choose is not None:
        index = read_index(source, (*packages, *others))
        chosen = choose(Index(**{**index, "versions": allowed(live.survey(), index["versions"])}))
        names = [version_locks.spec(*each) for each in chosen.items()] + [each for each in packages if each not in chosen]
    yield from locks_free(target.lock_timeout_s)
    yield from lift(to_lift(live.survey(), (*packages, *others)))
    yield from remember(packages)
    fresh = (f"--setopt=gpu-bringup-{source.name}.metadata_expire=60",) if source else ()
    # Resolves, downloads and checks signatures; whatever is wrong fails here, before anything is unpacked. So does a driver that would
    # bring another kernel; headers may (RHEL 10's meta does): then the module is built for it, too.
    kernel = live.survey()["kernel"] if choose is not None else None
    trial = (*fresh, "install", "--downloadonly", *names)
    yield FunctionCommand(_try, (target, kernel, trial), {}, _timeout=INSTALL_TIMEOUT_S + 60)
    yield dnf(*fresh, "install", *names, way_out=way_out)
    there = live.survey()["packages"]["installed"]
    if reinstall and any(each in there for each in packages):
        yield dnf(*fresh, "reinstall", *(each for each in packages if each in there))


def _try(state: State, host: Host, target: Target, kernel: str | None, arguments: tuple[str, ...]) -> bool:
    done, said = shell.run(host, RETRYING, "", "dnf", *OPTIONS, *arguments, timeout_s=INSTALL_TIMEOUT_S)
    for each in dnf_output.passed_over(said):
        remark(host, f"the package source {each} could not be read, and was passed over")
    extra = target.driver.extra_repositories if target.driver else ()
    problem = (refusal_of_kernels(said, kernel) if kernel else None) if done else dnf_output.problem(said, extra)
    if problem:
        report_problem(host, problem)
    return problem is None


def remember(packages: tuple[str, ...]) -> Iterator[PyinfraCommand]:
    """What was not there before we came is ours to remove again (deploys/undo.py); noted before it is installed."""
    there, known = live.survey()["packages"]["installed"], live.survey()["packages"]["ours"]
    yield from note(provenance.INSTALLED, [each for each in packages if each not in there and each not in known])


def lift(entries: list[str]) -> Iterator[PyinfraCommand]:
    """Take lines out of the list of version locks, which stays as it is beside them: the plugin's own delete loses people's comments."""
    if entries:
        yield StringCommand("sh", "-c", QuoteString(LIFT), "sh", *(QuoteString(each) for each in entries))


def hold(target: Target, names: tuple[str, ...]) -> Iterator[PyinfraCommand]:
    """Lock what is installed at its exact versions; old locks of ours on the same packages go. Raises HostError without the plugin."""
    survey = live.survey()
    dnf_state = survey["packages"]["dnf"]
    off = unreadable(dnf_state["version_locks"]) if dnf_state else None
    if off is not None:
        raise HostError(f"packages cannot be held: {off}; switch it on, or set gpu_hold_packages to none")
    if dnf_state is not None and dnf_state["version_locks"] is None:
        yield from install(target, (LOCKS_PLUGIN,), None, None)
    unheld = unheld_specs(survey, names)
    stale = [each for each in ours(survey) if version_locks.parse(each).name in unheld]
    yield from lift(stale)
    yield StringCommand(_own("versionlock", "add", *unheld.values()))


def release(names: tuple[str, ...]) -> Iterator[PyinfraCommand]:
    """Lift our locks on these packages."""
    yield from lift([each for each in ours(live.survey()) if version_locks.parse(each).name in names])


def unheld_specs(survey: Survey, names: tuple[str, ...]) -> dict[str, str]:
    """Installed ones of these that no lock keeps where they are: name -> what to lock."""
    there = survey["packages"]["installed"]
    return {each: version_locks.spec(each, there[each]["version"]) for each in names if each in there and not there[each]["held"]}


def remove(names: tuple[str, ...], unhold: tuple[str, ...], stream: str | None) -> Iterator[PyinfraCommand]:
    """Take packages back, rpm's keys among them, with our locks on them. What depends on something else stays."""
    survey = live.survey()
    yield from lift(
        [each for each in locks(survey) if each in ours(survey) and version_locks.parse(each).name in (*unhold, *names)]
    )
    keys = [each for each in names if each.startswith("gpg-pubkey-")]
    others = [each for each in names if each not in keys]
    if others:
        yield dnf("--setopt=clean_requirements_on_remove=0", "--disablerepo=*", "remove", *others)
    if keys:
        yield StringCommand("rpm -e --allmatches", *(QuoteString(each) for each in keys))
    dnf_state = survey["packages"]["dnf"]
    if stream and dnf_state and dnf_state["stream"] == stream.partition(":")[2]:
        yield StringCommand(_own("module", "reset", MODULE))


def _own(*arguments: str) -> StringCommand:
    return StringCommand("dnf", *(QuoteString(each) for each in (*WITHOUT_REPOSITORIES, *arguments)))
