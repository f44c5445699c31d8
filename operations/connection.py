"""A connection that notices when its host is gone."""

from __future__ import annotations

import contextlib
import socket

from pyinfra.api import Host
from pyinfra.connectors.ssh import SSHConnector

KEEPALIVE_S = 10
DEAD_AFTER_MS = 30_000  # unanswered data, keepalives included, for so long ends the connection


def keep_alive(host: Host) -> None:
    """Without it a command on a host that lost power waits for its time limit, minutes later. No effect on other connectors."""
    connector = host.connector
    if not isinstance(connector, SSHConnector) or connector.client is None:
        return
    transport = connector.client.get_transport()
    if transport is None:
        return
    transport.set_keepalive(KEEPALIVE_S)
    option = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux
    if option is not None and hasattr(transport.sock, "setsockopt"):  # a jump host's channel is no socket
        with contextlib.suppress(OSError):
            transport.sock.setsockopt(socket.IPPROTO_TCP, option, DEAD_AFTER_MS)


def is_lost(host: Host) -> bool:
    """Has the host's SSH connection ended by itself? Never for other connectors."""
    connector = host.connector
    if not isinstance(connector, SSHConnector) or connector.client is None:
        return False
    transport = connector.client.get_transport()
    return transport is None or not transport.is_active()
