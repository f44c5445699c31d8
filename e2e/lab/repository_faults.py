"""What can be wrong with the lab's package repositories, from the next request on and for all hosts, until heal()."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from . import repository
from .network import Network

DRIVER = r"/cuda/"
DRIVER_KEY = r"/cuda/.*\.pub$"
DRIVER_INDEX = r"/cuda/.*/Packages"

_HTML = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>You must sign in to use this network.</body></html>\n"


@dataclass(frozen=True)
class Rule:
    """What is answered to requests whose path holds the regular expression; see server.py. Without anything but path: as usual."""

    path: str
    times: int | None = None
    delay_s: float = 0
    status: int | None = None
    drop: bool = False
    body: str | None = None
    append: str | None = None


def answer(*rules: Rule) -> None:
    """From now on the repositories answer by these rules, in the place of those before."""
    used = repository.RULES.with_suffix(".used")
    used.unlink(missing_ok=True)
    scratch = repository.RULES.with_suffix(".new")
    scratch.write_text(json.dumps([{key: value for key, value in asdict(rule).items() if value} for rule in rules]))
    scratch.rename(repository.RULES)


def used() -> dict[int, int]:
    """How often each of the rules has counted, by its number from 0."""
    counts = repository.RULES.with_suffix(".used")
    found: dict[str, int] = json.loads(counts.read_text()) if counts.exists() else {}
    return {int(number): count for number, count in found.items()}


def dead(path: str = DRIVER, times: int | None = None) -> Rule:
    """The connection ends without an answer."""
    return Rule(path, times, drop=True)


def slow(path: str = DRIVER, delay_s: float = 20, times: int | None = None) -> Rule:
    return Rule(path, times, delay_s=delay_s)


def status(code: int, path: str = DRIVER, times: int | None = None) -> Rule:
    """404: the mirror has not got it; 503: for now; 401, 403: not for you."""
    return Rule(path, times, status=code)


def half_synced(path: str = DRIVER_INDEX, times: int | None = None) -> Rule:
    """The index is newer than the Release file that names its sum: `Mirror sync in progress?`"""
    return Rule(path, times, append="\n")


def key_is_html() -> Rule:
    """A proxy's page in the place of the key."""
    return Rule(DRIVER_KEY, body=_HTML)


def key_is_another(network: Network) -> Rule:
    """A key, but not the one that signs."""
    other = repository.build_repositories(network, replace(repository.usual(), signed_by="other"))
    return Rule(DRIVER_KEY, body=next(other.glob("cuda/repos/*/*/3bf863cc.pub")).read_text())


def offer(network: Network, **changed: Any) -> None:
    """What the driver repository holds and who has signed it, as keywords of repository.Offer; switched from one moment to the next.

    drivers=("570.211.01",): these versions alone; headers=False: none for the running kernel; signed_by="expired": by the usual key, of
    which the repository hands out a copy that has expired; signed_by="other": by a key that nobody expects.
    """
    repository.put_up(network, replace(repository.usual(), **changed))


def heal(network: Network) -> None:
    """The repositories as they were when the lab came up."""
    repository.put_back(network)
