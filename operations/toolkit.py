"""NVIDIA's container toolkit and the CDI spec."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from bringup.index import pick_newest
from bringup.steps.containers import toolkit_gone
from bringup.target import Target
from facts import live
from facts.packages import Index
from operations import packages
from operations.guard import Commands, host_operation
from operations.needed import needed

CDI_FILE = "/etc/cdi/nvidia.yaml"


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
def cdi_spec(target: Target) -> Commands:
    """The CDI spec of the driver that is loaded now. Specs in /var/run/cdi, which the toolkit's own unit makes, are made anew too."""
    if needed("cdi-spec", target) is None:
        return
    yield StringCommand(
        "mkdir -p -m 755 /etc/cdi && nvidia-ctk cdi generate --output=" + CDI_FILE + ".new.yaml",
        "&& mv -f", CDI_FILE + ".new.yaml", CDI_FILE,
        "&& if [ -e /var/run/cdi/nvidia.yaml ]; then cp", CDI_FILE, "/var/run/cdi/nvidia.yaml; fi",
        _timeout=120,
    )  # fmt: skip
