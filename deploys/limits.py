"""Locked memory for users, systemd units and Docker, which takes it up with its next restart: container_runtime.py sees to that."""

from bringup.target import Target
from deploys.frame import stage
from operations import limits


def memlock(target: Target) -> None:
    limits.memlock(name="memlock", target=target)


stage(memlock)
