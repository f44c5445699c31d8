"""A connection that notices when its host is gone or does not answer any more, and that can be given up.

pyinfra's own limit counts only while it reads a command's output; opening a channel, and what it sends when it disconnects, have none.
Once the connection is closed, every one of these waits ends with an error.
"""

from __future__ import annotations

import contextlib
import time
from weakref import WeakSet

import gevent
from gevent import Greenlet
from paramiko import SSHException, Transport
from pyinfra.api import Host
from pyinfra.connectors.ssh import SSHConnector

ASK_EVERY_S = 10
ANSWER_S = 30

_watched: WeakSet[Transport] = WeakSet()


def transport_of(host: Host) -> Transport | None:
    """None where the host is reached in another way than by SSH, or not connected."""
    connector = host.connector
    return connector.client.get_transport() if isinstance(connector, SSHConnector) and connector.client else None


def keep_alive(host: Host) -> None:
    """Ask the host's SSH server now and then whether it is there; without an answer the connection ends within 30 to 40 s.

    An answer is asked for, which paramiko's own keepalive does not do: a server that is frozen still takes what is sent to it.
    """
    transport = transport_of(host)
    if transport is not None and transport not in _watched:
        _watched.add(transport)
        gevent.spawn(_watch, transport)


def give_up(host: Host) -> None:
    """End the connection of a host that does not answer: pyinfra would wait for it once more when it disconnects."""
    transport = transport_of(host)
    if transport is not None:
        transport.close()


def is_lost(host: Host) -> bool:
    """Has the host's SSH connection ended? Never for other connectors."""
    connector = host.connector
    if not isinstance(connector, SSHConnector) or connector.client is None:
        return False
    transport = connector.client.get_transport()
    return transport is None or not transport.is_active()


def answered(asking: Greenlet, limit_s: int) -> bool:
    """Has it come to its end within so many seconds? Only those count in which this process was awake.

    On a busy machine, or while somebody is asked for a password, the answer may long be there, unread.
    """
    waited = 0
    while not asking.ready() and waited < limit_s:
        began = time.monotonic()
        asking.join(timeout=1)
        waited += time.monotonic() - began < 2
    return bool(asking.ready())


def _watch(transport: Transport) -> None:
    while transport.is_active():
        gevent.sleep(ASK_EVERY_S)
        if not answered(gevent.spawn(_ask, transport), ANSWER_S):
            transport.close()


def _ask(transport: Transport) -> None:
    with contextlib.suppress(SSHException, OSError, EOFError):  # it has ended, which _watch sees
        transport.global_request("keepalive@openssh.com", wait=True)  # "no such request" is an answer, too
