"""The kernel's command line, by the boot loader's own tool."""

from __future__ import annotations

from pyinfra.api import QuoteString, StringCommand

from bringup.command_line import GRUB_FILE, grub_text
from bringup.target import Target
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.needed import needed

TIMEOUT_S = 300  # update-grub looks for other systems on every disk


@host_operation
def command_line(target: Target) -> Commands:
    """Takes effect with the next boot, which the step `reboot` asks for where cgroup v2 waits for it."""
    wanted = target.command_line
    if needed("kernel-command-line", target) is None or wanted is None:
        return
    if wanted.tool == "grubby":
        changes = [
            f"--{what}={' '.join(words)}" for what, words in (("args", wanted.add), ("remove-args", wanted.remove)) if words
        ]
        yield StringCommand("grubby", "--update-kernel=ALL", *(QuoteString(each) for each in changes), _timeout=TIMEOUT_S)
    else:
        yield write_file(GRUB_FILE, grub_text(wanted.add, wanted.remove))
        yield StringCommand("update-grub", _timeout=TIMEOUT_S)
