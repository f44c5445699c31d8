"""Container images."""

from __future__ import annotations

from pyinfra.api import QuoteString, StringCommand

from bringup.steps.containers import missing_images
from bringup.target import Target
from facts import live
from operations.guard import Commands, host_operation
from operations.needed import needed

PULL_TIMEOUT_S = 3600


@host_operation
def images(target: Target) -> Commands:
    """Pull what is missing."""
    if needed("images", target) is None:
        return
    for each in missing_images(live.survey(), target) or target.images:
        yield StringCommand("docker pull --quiet", QuoteString(each), _timeout=PULL_TIMEOUT_S)
