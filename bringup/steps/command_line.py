"""The kernel's command line, before the one reboot: cgroup v2 on, and old workarounds off where the user gives leave."""

from __future__ import annotations

from bringup.command_line import GRUB_FILE, UNIFIED, grub_text
from bringup.steps import Change, edited, uncommented
from bringup.survey import Survey, known
from bringup.target import Target


def command_line(survey: Survey, target: Target) -> Change | None:
    """What boots next has what is wanted and nothing that is unwanted, by what the boot loader's own tool was told."""
    wanted = target.command_line
    if wanted is None or is_configured(survey, target):
        return None
    after = edited(survey)
    if wanted.tool == "grubby":
        kept = (each for each in (known(survey["bootloader"]["arguments"]) or "").split() if each not in wanted.remove)
        after["bootloader"]["arguments"] = " ".join(dict.fromkeys([*kept, *wanted.add]))
    else:
        after["our_files"][GRUB_FILE] = uncommented(grub_text(wanted.add, wanted.remove))
    words = [*(f"+{each}" for each in wanted.add), *(f"-{each}" for each in wanted.remove)]
    why = "the kernel runs with cgroup v1" if wanted.add else f"old workarounds: {', '.join(wanted.remove)}"
    return Change(why, f"{' '.join(words)} on the kernel command line, by {wanted.tool}", after)


def is_configured(survey: Survey, target: Target) -> bool:
    """Will the next boot have it?"""
    wanted = target.command_line
    if wanted is None:
        return True
    if wanted.tool == "grubby":
        words = (known(survey["bootloader"]["arguments"]) or "").split()
        return set(wanted.add) <= set(words) and not set(wanted.remove) & set(words)
    return survey["our_files"].get(GRUB_FILE) == uncommented(grub_text(wanted.add, wanted.remove))


def needs_reboot(survey: Survey, target: Target) -> str | None:
    """Why, or None: words without effect may wait for any boot."""
    wanted = target.command_line
    if (
        wanted is None
        or UNIFIED not in wanted.add
        or survey["cgroup_controllers"] is not None
        or not is_configured(survey, target)
    ):
        return None
    return f"the kernel runs with cgroup v1, and {UNIFIED} waits on its command line"
