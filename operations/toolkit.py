"""NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import QuoteString, StringCommand

from bringup.index import pick_newest
from bringup.steps.containers import toolkit_gone
from bringup.steps.toolkit_config import PATH, wrong_keys
from bringup.target import Target
from facts import live
from facts.packages import Index
from operations import packages
from operations.guard import Commands, host_operation
from operations.needed import needed


@host_operation
def toolkit_packages(target: Target) -> Commands:
    """All packages of the toolkit at one version."""
    toolkit = target.toolkit
    if needed("toolkit-packages", target) is None or toolkit is None:
        return

    def choose(index: Index) -> Mapping[str, str]:
        return pick_newest(index["versions"], toolkit.packages, toolkit.floor, toolkit.repository.url)

    gone = toolkit_gone(live.survey()) is not None  # apt and dnf would find nothing to do where the packages are there
    yield from packages.install(target, toolkit.packages, toolkit.repository, choose, reinstall=gone)


@host_operation
def toolkit_config(target: Target) -> Commands:
    """Single keys, by the toolkit's own tool: its packages rewrite the file at each upgrade, and keep what is set in this way."""
    if needed("toolkit-config", target) is None:
        return
    for key, (value, _) in wrong_keys(live.survey()).items():
        yield StringCommand("nvidia-ctk config --in-place", f"--config-file={PATH}", "--set", QuoteString(f"{key}={value}"))
