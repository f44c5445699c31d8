"""One image onto one host: attempts, and not too many hosts at once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from urllib.parse import quote

import gevent
from gevent.lock import BoundedSemaphore
from pyinfra import logger
from pyinfra.api import Host

from bringup.errors import HostError
from bringup.pulls import BACK_OFF_S, STALL_S, Progress, parse_progress
from bringup.references import familiar, parts
from bringup.target import Pulling
from operations import shell
from operations.image_board import BOARD
from operations.image_scripts import LOOK, PULL, STOP, SUMS, WORKER
from operations.registry import authorization, explained

LIMIT_S = 6 * 3600  # of one attempt: 40 GB over 20 Mbit/s
LOOK_S = 1.0
LOST_S = 90  # without an answer from the host

_places: dict[int, BoundedSemaphore] = {}


@contextmanager
def _place(parallel: int) -> Iterator[None]:
    """One of N places; hosts without one wait."""
    places = _places.setdefault(parallel, BoundedSemaphore(parallel))
    BOARD.waiting += 1
    places.acquire()
    BOARD.waiting -= 1
    try:
        yield
    finally:
        places.release()


def pull(host: Host, reference: str, pulling: Pulling, arch: str, total: int | None) -> str | None:
    """None when it is there, else why not, in one sentence. Passing faults are tried again.

    Within an attempt Docker tries each layer five times and goes on where it was. What outlives an attempt is Docker's to decide: its
    containerd store keeps whole layers, its older stores keep those that another image has.

    + total: compressed bytes, as far as they are known
    """
    with _place(pulling.parallel):
        try:
            for wait_s in (*BACK_OFF_S, None):
                said = _attempt(host, reference, pulling, total)
                if said is None:
                    return None
                found = explained(said, reference, pulling, arch)
                needs_login = found.kind in ("login", "permission") and parts(reference).registry not in pulling.logins
                if needs_login and _with_own_login(host, reference):
                    return None
                if not found.passing or wait_s is None:
                    return found.sentence
                host.log(f"{found.sentence}; tried again in {wait_s} s", logger.warning)
                gevent.sleep(wait_s)
            return None
        except HostError as error:
            return str(error)
        finally:
            BOARD.leave(host)


def _attempt(host: Host, reference: str, pulling: Pulling, total: int | None) -> str | None:
    """None when it is there, else what Docker said. Raises HostError for a host that does not answer."""
    image = parts(reference)
    folder = f"/run/gpu-bringup-pull/{sha256(reference.encode()).hexdigest()[:16]}"
    path = f"/images/create?fromImage={quote(image.name, safe='')}&tag={quote(image.digest or str(image.tag), safe='')}"
    success, said = shell.run(
        host, PULL, folder, path, str(LIMIT_S), SUMS, WORKER, stdin=(authorization(pulling, image.registry),)
    )
    if not success:
        raise HostError(
            f"a pull could not be started on the host ({said[-200:] or 'it did not answer'}): is it up, has /run room?"
        )
    began = last_news = answered = time.monotonic()
    before = Progress()
    while True:
        success, said = shell.run(host, LOOK, folder, timeout_s=LOST_S // 3)
        answered = time.monotonic() if success else answered
        gevent.sleep(0 if success else LOOK_S)
        if time.monotonic() - answered > LOST_S:
            raise HostError(
                f"no answer from the host for {LOST_S} s while it pulled {image.tagged or familiar(reference)}: "
                "is it up? The next run joins a pull that goes on"
            )
        lines = said.splitlines() if success else []
        for line in lines:
            kind, _, rest = line.partition(" ")
            if kind == "progress":
                now = parse_progress(rest, total)
                if (now.got, now.finished, now.note) != (before.got, before.finished, before.note):
                    before, last_news = now, time.monotonic()
                BOARD.show(host, image.tagged or familiar(reference), now, now.got / max(time.monotonic() - began, 0.1))
            elif kind == "pulled":
                return None
            elif kind == "error":
                return _words(rest)
            elif kind == "said":
                return rest or "Docker ended the pull without a word"
        if time.monotonic() - last_news > STALL_S:
            shell.run(host, STOP, folder)
            return f"nothing came for {STALL_S} s: timeout"


def _words(line: str) -> str:
    """Of an error of Docker's: the innermost, which its other words only repeat."""
    try:
        value = json.loads(line)
        return str(value.get("error") or value.get("message") or line)
    except (ValueError, AttributeError):
        return line


def _with_own_login(host: Host, reference: str) -> bool:
    """By the login that somebody has made on the host itself (docker login as root), which Docker's interface does not use."""
    script = '[ -s "${DOCKER_CONFIG:-$HOME/.docker}/config.json" ] || exit 1; exec timeout "$2" docker pull --quiet "$1"'
    return shell.run(host, script, reference, str(LIMIT_S), timeout_s=LIMIT_S + 60)[0]
