"""What a package source offers, read before anything is changed for it."""

from __future__ import annotations

import gevent
from pyinfra import logger

from bringup.errors import HostError
from bringup.index import is_passing, reason
from bringup.target import Repository
from facts import live
from facts.dnf import RpmIndex
from facts.packages import Index, RepositoryIndex
from operations.apt_scripts import RETRY_PAUSES_S

UPDATE_TIMEOUT_S = 600


def read_index(wanted: Repository, packages: tuple[str, ...]) -> Index:
    """The source's key and the versions of the packages in it, from a private read. Passing faults are waited out. Raises HostError."""
    current = live.current_host()
    for pause_s in (*RETRY_PAUSES_S, 0):
        index = _read(wanted, packages)
        if not index:
            raise HostError(f"the repository {wanted.url} could not be looked at: the lines above say why")
        problem = index["key_problem"] or index["index_problem"]
        if not pause_s or not is_passing(problem):
            break
        current.log(f"{wanted.url}: {reason(problem)}; asked again in {pause_s} s", logger.warning)
        gevent.sleep(pause_s)
    return index


def _read(wanted: Repository, packages: tuple[str, ...]) -> Index:
    """Empty where the host did not answer."""
    ask = live.current_host().get_fact
    url, key_url, names = wanted.url, wanted.key_url, list(packages)
    if wanted.family != "apt":
        return ask(RpmIndex, url=url, key_url=key_url, packages=names, _ignore_errors=True, _timeout=UPDATE_TIMEOUT_S)
    return ask(
        RepositoryIndex,
        url=url,
        suite=wanted.suite,
        component=wanted.component,
        key_url=key_url,
        packages=names,
        _ignore_errors=True,
        _timeout=UPDATE_TIMEOUT_S,
    )
