"""A connection that has ended is told from one that has not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from pyinfra.api import Host
from pyinfra.connectors.ssh import SSHConnector

from facts.connection import is_lost


class Fake:
    """A host of one's own making, which can be in a set."""

    def __init__(self, connector: object) -> None:
        self.name, self.connector = "a", connector


def host(active: bool | None) -> Any:
    """active: its transport's; None: there is none."""
    connector = SSHConnector.__new__(SSHConnector)
    transport = None if active is None else SimpleNamespace(is_active=lambda: active)
    connector.client = SimpleNamespace(get_transport=lambda: transport)  # type: ignore[assignment]
    return Fake(connector)


def test_a_connection_is_lost_once_its_transport_has_ended() -> None:
    assert [is_lost(host(each)) for each in (True, False, None)] == [False, True, True]
    assert not is_lost(cast("Host", Fake(object()))), "only SSH has one"
