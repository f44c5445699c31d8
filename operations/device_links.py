"""Links in /dev/char for NVIDIA's device nodes."""

from __future__ import annotations

from pyinfra.api import StringCommand

from bringup.steps import device_links as steps
from bringup.target import Target
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed


@host_operation
def device_links(target: Target) -> Commands:
    """The links first: the daemon-reload that makes systemd know the units would take the GPUs from containers that run without them."""
    if needed("device-links", target) is None:
        return
    for path, text in steps.FILES.items():
        yield write_file(path, text)
    yield StringCommand(
        "sh", steps.SCRIPT, "&& systemctl daemon-reload && systemctl enable", steps.SERVICE, steps.WATCH,
        "&& systemctl restart", steps.WATCH,
    )  # fmt: skip
