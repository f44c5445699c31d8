"""Steps of Docker itself: its daemon, who may use it, and its daemon.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bringup import daemon_json as merging
from bringup import versions
from bringup.daemon_info import missing_from_daemon
from bringup.dockerd import KEYS, RELOADED, flag_values
from bringup.errors import HostError, nearest
from bringup.steps import Change, edited
from bringup.steps.packages import missing, with_installed
from bringup.survey import Survey, known, unit, unreadable
from bringup.target import Docker, Target


@dataclass(frozen=True)
class DaemonChange:
    """How daemon.json is taken into use. `wanted`: what `docker info` must then show."""

    why: str
    text: str
    restart: bool  # a reload is not enough
    wanted: Mapping[str, Any]
    read: bool  # the daemon that runs has read the file that is there
    lends: bool  # live-restore is on for a restart alone: the file does not have it, and containers run that it lets live on
    ends: tuple[str, ...]  # containers that a restart ends all the same
    ends_why: str = ""  # of these, in words that go on the sentence


def docker_engine(survey: Survey, target: Target) -> Change | None:
    """Docker is there and its daemon answers; one that is there is adopted, never replaced."""
    if isinstance(known(survey["docker"]["info"]), dict):
        return None
    after = edited(survey)
    why = unreadable(survey["docker"]["info"])
    service = unit(survey, "docker.service")
    if service is None:
        lacking = missing(survey, target.docker.packages)
        after = with_installed(after, lacking)
        what, why = f"install {', '.join(lacking or target.docker.packages)}", "Docker is not installed"
    else:
        what, why = "start docker.service", f"the Docker daemon does not answer: {why}"
        if unreadable(survey["docker"]["images"]) is not None:  # what was pulled is there again
            after["docker"]["images"] = list(survey["docker"]["pulled"])
    after["docker"]["info"] = {}
    return Change(why, what, after)


def docker_users(survey: Survey, docker: Docker) -> Change | None:
    """The users that the settings name are members of group docker."""
    members = known(survey["docker"]["group"]) or []
    lacking = [each for each in docker.users if each not in members]
    if not lacking:
        return None
    after = edited(survey)
    after["docker"]["group"] = [*members, *lacking]
    return Change(f"{', '.join(lacking)} not in group docker", "add them: each is root on this host by it", after)


def daemon_json(survey: Survey, target: Target) -> Change | None:
    """The file has what is wanted, and the daemon that runs has read it. Raises HostError when the file cannot be merged."""
    change = daemon_change(survey, target)
    if change is None:
        return None
    after = edited(survey)
    after["docker"]["daemon_json"] = change.text
    after["docker"]["daemon_json_pending"] = None
    after["docker"]["memlock"] = None
    after["docker"]["info"] = {}
    after["docker"]["daemon_json_written_s"] = None
    how = "restart Docker" if change.restart else "let Docker read it again, without a restart"
    kept = "; containers live on by live-restore, which is switched on for it" if change.restart and change.lends else ""
    return Change(f"{merging.PATH} {change.why}", f"merge it, {how}, check that it took it up{kept}", after)


def daemon_change(survey: Survey, target: Target) -> DaemonChange | None:
    """None where the file has what is wanted and the daemon has read it. Raises HostError where the file cannot be merged."""
    docker, wanted = survey["docker"], target.docker.options
    flags = flag_values(docker["command"])
    text, pending = _texts(survey, flags)
    base = _without_loan(text, pending)
    merged = merging.merged(base, wanted, docker["command"])
    changes = [*merged.changes, *(["live-restore"] if base != text and "live-restore" not in merged.changes else [])]
    written, started = docker["daemon_json_written_s"], docker["started_s"]
    unread = written is not None and started is not None and written > started and written != docker["daemon_json_taken_up_s"]
    info = known(docker["info"]) or {}
    if merged.unknown and (unread or not info):  # a daemon that runs with it knows it
        hint = nearest(merged.unknown[0], KEYS)
        raise HostError(f"{merging.PATH} has {', '.join(merged.unknown)}, which dockerd does not know{hint}: mend it")
    lacking = missing_from_daemon(info, wanted) if info else []
    memlock = known(docker["memlock"])
    other_memlock = target.memlock is not None and memlock not in (None, str(target.memlock))
    why = _why(changes, lacking, unread=unread, memlock=memlock if other_memlock else None, broken_off=pending is not None)
    if not why:
        return None
    restart = (
        not RELOADED.issuperset({*changes} - {"byte order mark"}) or unread or other_memlock or bool(lacking and not changes)
    )
    content = merged.content
    running = tuple(each["name"] for each in known(docker["running"]) or [])
    kept = content.get("live-restore") is True or flags.get("live-restore") is True
    forced = in_swarm(info) or flags.get("live-restore") is False
    return DaemonChange(
        why=why,
        text=merged.text or "{}\n",
        restart=restart,
        wanted={**wanted, "live-restore": kept},
        read=not unread,
        lends=bool(running) and not kept and not forced,
        ends=running if forced and not kept else removed_by_restart(survey),
        ends_why=_ends_why(info, forced=forced and not kept),
    )


def _ends_why(info: Mapping[str, Any], *, forced: bool) -> str:
    if in_swarm(info):
        return "which live-restore cannot keep in a swarm"
    if forced:
        return "since Docker's unit forbids live-restore"
    return f"which were started with --rm, and which Docker {info.get('ServerVersion')} removes when it starts again"


def removed_by_restart(survey: Survey) -> tuple[str, ...]:
    """Running containers that Docker takes for leftovers when it starts, live-restore or not: those of --rm, before 24.0.8.

    Source: moby/moby#46308, mended by #46857 and #46869; seen with 20.10.24 on a lab host.
    """
    info = known(survey["docker"]["info"]) or {}
    version = info.get("ServerVersion")
    if not version or versions.at_least(str(version), "24.0.8"):
        return ()
    return tuple(known(survey["docker"]["auto_remove"]) or [])


def with_live_restore(text: str | None) -> str:
    """The file with live-restore switched on and nothing else changed."""
    return merging.merged(text, {"live-restore": True}).text


def in_swarm(info: Mapping[str, Any]) -> bool:
    """A node of a swarm, whose daemon does not start with live-restore."""
    swarm = info.get("Swarm")
    return isinstance(swarm, Mapping) and swarm.get("LocalNodeState") in ("active", "pending", "locked")


def file_text(survey: Survey) -> str | None:
    """daemon.json; where it is gone since a run broke off, the copy that was kept of it."""
    text, pending = known(survey["docker"]["daemon_json"]), known(survey["docker"]["daemon_json_pending"])
    return pending or None if text is None else text


def _texts(survey: Survey, flags: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """(the file, what a run that broke off has kept of it). Raises HostError where it cannot be read, or is not the one."""
    hidden = unreadable(survey["docker"]["daemon_json"])
    if hidden is not None:  # taken for absent, it would be written anew without what is the user's
        way = "write it anew in UTF-8" if "UTF-8" in hidden else "run as root, or set _sudo"
        raise HostError(f"{merging.PATH} cannot be read ({hidden}): {way}")
    other = flags.get("config-file")
    if other not in (None, "", merging.PATH):
        raise HostError(
            f"docker.service reads {other} (--config-file) and not {merging.PATH}: move its content there, and take the flag out"
        )
    return file_text(survey), known(survey["docker"]["daemon_json_pending"])


def _without_loan(text: str | None, pending: str | None) -> str | None:
    """The file without the live-restore that a run that broke off had lent it."""
    try:
        now, before = merging.parse(text), merging.parse(pending)
    except HostError:
        return text
    if pending is None or now.get("live-restore") is not True or before.get("live-restore") is True:
        return text
    rest = {key: before.get(key) if key == "live-restore" else value for key, value in now.items()}
    if "live-restore" not in before:
        del rest["live-restore"]
    return json.dumps(rest, indent=2, ensure_ascii=False) + "\n"


def _why(changes: list[str], lacking: list[str], *, unread: bool, memlock: str | None, broken_off: bool) -> str:
    if changes:
        return f"is not as it shall be ({', '.join(changes)})"
    if lacking:
        return f"is read, but the daemon runs without {', '.join(lacking)}"
    if unread:
        return "was written after the daemon had started"
    if memlock is not None:
        return f"is read, but the daemon runs with a memlock of {memlock}"
    return "was being changed by a run that broke off" if broken_off else ""
