"""Docker itself, who may use it, and its daemon.json."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from pyinfra import state
from pyinfra.api import QuoteString, StringCommand
from pyinfra.api.command import PyinfraCommand

from bringup import daemon_json as merging
from bringup.daemon_info import evidence
from bringup.dockerd import words
from bringup.errors import HostError
from bringup.steps.docker import DaemonChange, daemon_change, file_text, with_live_restore
from bringup.steps.docker import docker_engine as docker_engine_step
from bringup.survey import Survey, unit
from bringup.target import Target
from facts import live
from operations import packages
from operations.docker_scripts import TAKE_UP
from operations.files import show_diff
from operations.guard import Commands, host_operation
from operations.needed import needed

TAKE_UP_S = 600  # the script's own waits together, with room

ADD_USER = """
if ! id -u -- "$1" >/dev/null 2>&1; then
    echo "gpu_docker_users has $1, and this host has no such user: make it first, or take it out" >&2; exit 1
fi
getent group docker >/dev/null || groupadd --system docker
gpasswd -a "$1" docker
"""


@host_operation
def docker_engine(target: Target) -> Commands:
    """Docker where there is none, or its daemon started where it is down. What is there is adopted, never replaced."""
    before = live.survey()
    if needed("docker-engine", target) is None:
        return
    if unit(before, "docker.service") is None:
        yield from packages.install(target, target.docker.packages, target.docker.repository, None)
        if target.family != "apt":  # whose packages start no service
            yield StringCommand("systemctl enable --now docker.service")
    else:
        change = daemon_change(before, target)
        yield StringCommand("systemctl reset-failed docker.service; systemctl enable --now docker.service || true")
        if state.is_executing and change and docker_engine_step(live.survey(fresh=True), target):
            yield from take_up(change, before)  # it may be the file that keeps it down, and be whole once it is merged
    if state.is_executing:
        found = docker_engine_step(live.survey(fresh=True), target)
        if found is not None:
            raise HostError(f"{found.why}: see `journalctl -u docker` on the host")


@host_operation
def docker_users(target: Target) -> Commands:
    """Members of group docker: those that the settings name, beside those that are there."""
    if needed("docker-users", target) is None:
        return
    for each in target.docker.users:
        yield StringCommand("sh", "-c", QuoteString(ADD_USER), "sh", QuoteString(each))


@host_operation
def daemon_json(target: Target) -> Commands:
    """Merge what is wanted into daemon.json; Docker reads it again, or is restarted where that is not enough. Goes back by itself."""
    before = live.survey()
    if needed("daemon-json", target) is None:
        return
    change = daemon_change(before, target)
    if change is None:
        return
    if state.is_executing and change.restart and change.ends and "stop-containers" not in target.accepted:
        raise HostError(
            f"Docker must be restarted and would end {', '.join(change.ends)}, {change.ends_why}: "
            f"stop them (on a node of a swarm, drain it), or add stop-containers to gpu_accept"
        )
    yield from take_up(change, before, may_end="stop-containers" in target.accepted)


def take_up(change: DaemonChange, survey: Survey, *, may_end: bool = False) -> Iterator[PyinfraCommand]:
    """The file is written, checked, put in place and read by the daemon, all by one script.

    + survey: what the change was made from
    + may_end: containers may be ended by a restart where they cannot be kept
    """
    docker = survey["docker"]
    old = file_text(survey)
    show_diff(merging.PATH, old, change.text)
    lend = "never" if change.ends and not may_end else "lend" if change.lends else ""
    texts = [change.text, *([with_live_restore(change.text), with_live_restore(old)] if change.lends else ["", ""])]
    lines = [line for text in texts for line in (*base64.encodebytes(text.encode()).decode().splitlines(), ".")]
    written = docker["daemon_json_written_s"]
    arguments = (
        merging.PATH,
        "restart" if change.restart else "reload",
        "-" if written is None else f"{written:.3f}",
        "read" if change.read else "",
        lend,
        "\n".join(text for _, text in evidence(change.wanted)),
        "\n".join(text for _, text in evidence({**change.wanted, "live-restore": True})),
        *words(docker["command"]),
    )
    quoted = (QuoteString(each) for each in arguments)
    yield StringCommand("sh", "-c", QuoteString(TAKE_UP), "sh", *quoted, _stdin=lines, _timeout=TAKE_UP_S)
