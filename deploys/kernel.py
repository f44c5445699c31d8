"""Kernel work, before the one reboot: nouveau out."""

from bringup.target import Target
from deploys.frame import stage
from operations import driver


def kernel(target: Target) -> None:
    driver.nouveau_out(name="nouveau-out", target=target)


stage(kernel)
