"""Before anything: an interrupted package manager is finished."""

from bringup.target import Target
from deploys.frame import stage
from operations import apt


def preflight(target: Target) -> None:
    apt.package_manager(name="package-manager", target=target)


stage(preflight)
