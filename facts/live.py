"""The survey as it is now, at the price of a read only when something may have changed."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import gevent
from pyinfra.api import Host
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import ctx_host, ctx_state

from bringup.errors import HostError
from bringup.survey import Survey
from facts import connection
from facts.survey import HostSurvey

ANSWER_S = 60  # a survey takes well under a second, and limits itself to 15 s where something in it may block
MAX_AGE_S = 60.0  # others (cloud-init, unattended upgrades, people) change hosts too


@dataclass(frozen=True)
class _Kept:
    survey: Survey
    executed: int
    executing: bool
    read_at: float


_kept: WeakKeyDictionary[Host, _Kept] = WeakKeyDictionary()


def current_host() -> Host:
    """The host itself; `pyinfra.host` is a proxy, and no good key."""
    found = ctx_host.get()
    if not isinstance(found, Host):
        raise TypeError("outside of a host's context")
    return found


def _executed(host: Host) -> int:
    """How many operations have sent a command to this host so far, failed ones included."""
    return sum(1 for data in host.state.ops[host].values() if data.operation_meta.executed)


def survey(*, fresh: bool = False, wait_s: int = 0) -> Survey:
    """Kept until an operation of this run has executed something on the host, the phase has changed, or MAX_AGE_S.

    `fresh` reads again in any case. Raises HostError when the host cannot be surveyed.
    """
    host = current_host()
    executed, executing, now = _executed(host), host.state.is_executing, time.monotonic()
    kept = _kept.get(host)
    if kept and not fresh and (kept.executed, kept.executing) == (executed, executing) and now - kept.read_at < MAX_AGE_S:
        return kept.survey
    value = _read(host, wait_s)
    _kept[host] = _Kept(value, executed, executing, now)
    return value


def _read(host: Host, wait_s: int) -> Survey:
    limit_s = ANSWER_S + wait_s
    asking = gevent.spawn(_asked, host, wait_s)
    if not connection.answered(asking, limit_s):
        # not interrupted: an exception in the middle of it would leave locks of paramiko's as they must not be
        connection.give_up(host)
        raise HostError(
            f"we can log in, but a command did not answer within {limit_s} s: log in by hand and look for what hangs there "
            "(a disk, a network mount, sudo, a login script)"
        )
    value: Survey | HostError | None = asking.get()
    if isinstance(value, HostError):
        raise value
    if not value and connection.is_lost(host):
        raise HostError("the connection was lost, or the host's SSH server stopped answering: is the host still there?")
    if not value:
        raise HostError("the host could not be surveyed: the lines above say why")
    return value


def _asked(host: Host, wait_s: int) -> Survey | HostError | None:
    with ctx_state.use(host.state), ctx_host.use(host):
        try:
            # _ignore_errors: a failed fact would stop to ask (without -y), and then return its default all the same
            return host.get_fact(HostSurvey, wait_s=wait_s, _ignore_errors=True)
        except EOFError:
            if connection.is_lost(host):
                return None
            return HostError("sudo asks for a password and there is no terminal: set _sudo_password, or NOPASSWD on the host")
        except (
            PyinfraError
        ) as error:  # what it does first where sudo has a password; also when the connection is given up meanwhile
            return HostError(f"sudo's password could not be made ready on the host: {error}")


def expect(after: Survey) -> None:
    """In prepare (`--dry`, or before the question): let later steps see what this one would leave behind. Never at execution."""
    host = current_host()
    kept = _kept.get(host)
    if not host.state.is_executing and kept:
        _kept[host] = replace(kept, survey=after)
