"""Before anything: the package sources can be used, and an interrupted package manager is finished."""

from bringup.target import Target
from deploys.frame import stage
from operations import apt
from operations.sources import package_sources


def preflight(target: Target) -> None:
    package_sources(name="package-sources", target=target)
    apt.package_manager(name="package-manager", target=target)


stage(preflight)
