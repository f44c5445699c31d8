"""Scenarios have a lab of their own, beside the one that `up` makes: a user's hosts are never theirs to restore or end.

Imports nothing of the lab, whose modules read these variables when they are imported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

_VERBS = ("test", "converge")
_OWN = {"GPU_BRINGUP_LAB": "/var/lib/gpu-bringup-scenarios", "GPU_BRINGUP_LAB_NET": "9"}


def choose(argv: Sequence[str]) -> None:
    """Before a verb that runs scenarios: what the user has not set points to the scenarios' own lab."""
    if len(argv) > 1 and argv[1] in _VERBS and not os.environ.get("GPU_BRINGUP_LAB"):
        for name, value in _OWN.items():
            os.environ.setdefault(name, value)
