"""The CDI spec, and the unit that makes it at boot."""

from __future__ import annotations

from pyinfra.api import QuoteString, StringCommand

from bringup.steps import cdi as steps
from bringup.steps.sources import DISABLED
from bringup.target import Target
from facts import live
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed


@host_operation
def cdi_spec(target: Target) -> Commands:
    """The new spec first, then the wrong ones of others out of the way: containers can be started at any moment."""
    if needed("cdi-spec", target) is None:
        return
    aside = steps.set_aside(live.survey())
    for path, text in steps.FILES.items():
        yield write_file(path, text)
    yield StringCommand(
        "systemctl daemon-reload && systemctl enable", steps.SERVICE, "&& timeout 120 sh", steps.SCRIPT, _timeout=150
    )
    for path in aside:
        yield StringCommand("mv -f", QuoteString(path), QuoteString(path + DISABLED))
