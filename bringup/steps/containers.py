"""Steps of Docker and the container toolkit."""

from __future__ import annotations

from bringup import daemon_json as merging
from bringup import versions
from bringup.errors import HostError
from bringup.steps import Change, edited
from bringup.steps.packages import PREDICTED, missing, with_installed
from bringup.survey import Survey, installed, known, unit, unreadable
from bringup.target import Docker, Target, Toolkit


def docker_engine(survey: Survey, docker: Docker) -> Change | None:
    """Docker is there and its daemon answers; one that is there is adopted, never replaced."""
    if isinstance(known(survey["docker"]["info"]), dict):
        return None
    after = edited(survey)
    why = unreadable(survey["docker"]["info"])
    service = unit(survey, "docker.service")
    if service is None:
        lacking = missing(survey, docker.packages)
        after = with_installed(after, lacking)
        what, why = f"install {', '.join(lacking or docker.packages)}", "Docker is not installed"
    else:
        what, why = "start docker.service", f"the Docker daemon does not answer: {why}"
        if unreadable(survey["docker"]["images"]) is not None:  # what was pulled is there again
            after["docker"]["images"] = list(survey["docker"]["pulled"])
    after["docker"]["info"] = {}
    return Change(why, what, after)


def toolkit_packages(survey: Survey, toolkit: Toolkit) -> Change | None:
    """All at one version, not below the security floor."""
    found = {each: installed(survey, each) for each in toolkit.packages}
    lacking = [name for name, version in found.items() if version is None]
    old = [
        name
        for name, version in found.items()
        if version not in (None, PREDICTED) and not versions.at_least(str(version), toolkit.floor)
    ]
    mixed = len(set(found.values())) > 1 and not lacking
    gone = toolkit_gone(survey)
    if not lacking and not old and not mixed and not gone:
        return None
    after = with_installed(survey, list(toolkit.packages))
    after["toolkit_version"] = PREDICTED
    why = (
        f"{', '.join(lacking)} not installed"
        if lacking
        else f"older than {toolkit.floor}"
        if old
        else gone or "of several versions"
    )
    return Change(f"container toolkit: {why}", "install the container toolkit", after)


def toolkit_gone(survey: Survey) -> str | None:
    """Which of its programs is missing, or None. One that could not be asked is not missing."""
    why = unreadable(survey["toolkit_version"]) or ""
    if why.endswith("is missing"):
        return why
    return "nvidia-ctk is missing" if survey["toolkit_version"] is None else None


def daemon_json(survey: Survey, target: Target) -> Change | None:
    """The file has what is wanted, and the daemon that runs has read it. Raises HostError when the file cannot be merged."""
    docker = target.docker
    hidden = unreadable(survey["docker"]["daemon_json"])
    if hidden is not None:  # taken for absent, it would be written anew without what is the user's
        raise HostError(f"{merging.PATH} cannot be read ({hidden}): run as root, or set _sudo")
    why = []
    if merging.merged_text(known(survey["docker"]["daemon_json"]), docker.options) is not None:
        why.append("lacks what is wanted")
    info = known(survey["docker"]["info"]) or {}
    lacking = merging.missing_from_daemon(info, docker.options) if info else []
    written, started = survey["docker"]["daemon_json_written_s"], survey["docker"]["started_s"]
    if lacking and not why:
        why.append(f"the daemon runs without {', '.join(lacking)}")
    elif written is not None and started is not None and written > started and not why:
        why.append("was written after the daemon had started")
    memlock = known(survey["docker"]["memlock"])
    if target.memlock is not None and memlock not in (None, str(target.memlock)) and not why:
        why.append(f"is read, but the daemon runs with a memlock of {memlock}")
    if not why:
        return None
    after = edited(survey)
    after["docker"]["daemon_json"] = merging.merged_text(known(survey["docker"]["daemon_json"]), docker.options) or known(
        survey["docker"]["daemon_json"]
    )
    after["docker"]["memlock"] = None
    after["docker"]["info"] = {}
    after["docker"]["daemon_json_written_s"] = None
    return Change(f"{merging.PATH} {'; '.join(why)}", "merge it, restart Docker, check that it took it up", after)
