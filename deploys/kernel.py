"""Kernel work, before the one reboot: nouveau out, cgroup v2 on."""

from bringup.target import Target
from deploys.frame import stage
from operations import command_line, driver


def kernel(target: Target) -> None:
    driver.nouveau_out(name="nouveau-out", target=target)
    command_line.command_line(name="kernel-command-line", target=target)


stage(kernel)
