"""NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra import state
from pyinfra.api import QuoteString, StringCommand

from bringup.index import pick_newest
from bringup.steps.containers import toolkit_gone
from bringup.steps.toolkit_config import PATH, wrong_keys
from bringup.target import Target
from facts import live
from facts.packages import Index
from operations import apt, packages
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


# Settings files of these packages, which their purge would take along (rpm: moves away): kept beside, then put back where they are gone.
# daemon.json's copy is the pending one, which a run after one that broke off here merges from. Arguments: dpkg or rpm, the packages.
REMOVE_LEFTOVERS = r"""
manager=$1; shift
for f in /etc/docker/daemon.json /etc/nvidia-container-runtime/config.toml; do
    [ ! -e "$f" ] || [ -e "$f.gpu-bringup-pending" ] || cp -a "$f" "$f.gpu-bringup-pending" || exit 1
    [ ! -e "$f" ] || cp -a "$f" "$f.gpu-bringup-moved" || exit 1
done
if [ "$manager" = dpkg ]; then dpkg --purge "$@"; else rpm -e "$@"; fi
code=$?
for f in /etc/docker/daemon.json /etc/nvidia-container-runtime/config.toml; do
    [ ! -e "$f.gpu-bringup-moved" ] || cmp -s "$f.gpu-bringup-moved" "$f" || cp -a "$f.gpu-bringup-moved" "$f" || exit 1
    ! cmp -s "$f.gpu-bringup-moved" "$f.gpu-bringup-pending" || rm -f "$f.gpu-bringup-pending"
    rm -f "$f.gpu-bringup-moved"
done
exit $code
"""


@host_operation
def toolkit_leftovers(target: Target) -> Commands:
    """Packages of the toolkit's past go; the settings that they brought stay."""
    if needed("toolkit-leftovers", target) is None or target.toolkit is None:
        return
    if not state.is_executing:
        yield StringCommand("true")
        return
    survey = live.survey()
    names = [each for each in target.toolkit.leftovers if each in survey["packages"]["installed"]]
    yield from apt.locks_free(target.lock_timeout_s)
    manager = str(survey["packages"]["manager"])
    quoted = (QuoteString(each) for each in (manager, *names))
    yield StringCommand("sh", "-c", QuoteString(REMOVE_LEFTOVERS), "sh", *quoted, _timeout=300)


@host_operation
def toolkit_config(target: Target) -> Commands:
    """Single keys, by the toolkit's own tool: its packages rewrite the file at each upgrade, and keep what is set in this way."""
    if needed("toolkit-config", target) is None:
        return
    for key, (value, _) in wrong_keys(live.survey()).items():
        yield StringCommand("nvidia-ctk config --in-place", f"--config-file={PATH}", "--set", QuoteString(f"{key}={value}"))
