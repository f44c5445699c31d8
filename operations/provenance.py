"""The host's own record of what was done to it."""

from __future__ import annotations

import time

from bringup.steps import provenance as steps
from bringup.target import Target
from facts import live
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed
from operations.registry import with_digests
from operations.revision import revision


@host_operation
def provenance(target: Target) -> Commands:
    """Write /etc/gpu-bringup/provenance.json, where something but its time differs."""
    target = with_digests(target)
    if needed("provenance", target) is None:
        return
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    yield write_file(steps.PATH, steps.text(steps.wanted(live.survey(), target), now, revision()))
