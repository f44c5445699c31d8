"""What the kernel's command line shall have, so that the host runs with cgroup v2."""

from __future__ import annotations

from bringup.command_line import UNIFIED, keeps_v1, workarounds
from bringup.policy import Refused
from bringup.settings import Settings
from bringup.survey import Survey, known
from bringup.target import CommandLine

TOOLS = ("grubby", "update-grub")  # of Red Hat's relatives, of Debian and Ubuntu; the first that is there


def choose_command_line(survey: Survey, settings: Settings) -> CommandLine | None:
    """None: it stays as it is. Raises Refused where the kernel runs with cgroup v1, and that cannot be or may not be changed."""
    words = (known(survey["command_line"]) or "").split()
    tool = next((each for each in TOOLS if each in survey["bootloader"]["tools"]), None)
    v1 = survey["cgroup_controllers"] is None
    left = workarounds(words) if settings.clean_command_line else []
    if not v1:
        return CommandLine(tool, add=(), remove=tuple(left)) if left and tool else None
    keeping = keeps_v1(words)
    if tool is None or settings.reboot == "never" or (keeping and not settings.clean_command_line):
        raise _refused(keeping, leave=tool is not None and bool(keeping), reboot=settings.reboot == "never" and tool is not None)
    return CommandLine(tool, add=(UNIFIED,), remove=tuple(left))


def _refused(keeping: list[str], *, leave: bool, reboot: bool) -> Refused:
    """+ leave: a setting lets us take the words off; reboot: one is needed, and not allowed"""
    because = f", because of {', '.join(keeping)} on its command line" if keeping else ""
    reason = f"the kernel runs with cgroup v1{because}, and only cgroup v2 is supported"
    way = f"take {', '.join(keeping)} off" if keeping else f"put {UNIFIED} on"
    ours = ["set gpu_clean_command_line to true"] if leave else []
    ours += ["set gpu_reboot to if-idle"] if reboot else []
    first = f"{' and '.join(ours)}, or " if ours else ""
    return Refused("cgroup-v1", reason, f"{first}{way} the kernel command line and reboot")
