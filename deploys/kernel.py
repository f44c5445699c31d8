"""Kernel work, before the one reboot: headers for the module to be built against, and nouveau out."""

from bringup.target import Target
from deploys.frame import stage
from operations import driver


def kernel(target: Target) -> None:
    driver.kernel_headers(name="kernel-headers", target=target)
    driver.nouveau_out(name="nouveau-out", target=target)


stage(kernel)
