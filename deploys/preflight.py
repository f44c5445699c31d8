"""Before anything: the package sources can be used, and an interrupted package manager is finished."""

from bringup.target import Target
from deploys.frame import stage
from operations import apt, sources


def preflight(target: Target) -> None:
    sources.package_sources(name="package-sources", target=target)
    apt.package_manager(name="package-manager", target=target)
    sources.clashing_sources(name="clashing-sources", target=target)
    sources.apt_settings(name="apt-settings", target=target)


stage(preflight)
