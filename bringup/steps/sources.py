"""Steps of the package sources: what clashes with ours, and apt's settings."""

from __future__ import annotations

from collections.abc import Iterator

from bringup import sources
from bringup.sources import Clash
from bringup.steps import Change, edited
from bringup.steps.docker import docker_engine
from bringup.survey import Survey
from bringup.target import Repository, Target

SETTINGS_FILE = "/etc/apt/apt.conf.d/90-gpu-bringup"
DISABLED = ".disabled"
KERNEL_PACKAGES = ("linux-image-", "linux-headers-", "linux-modules-")


def repositories(survey: Survey, target: Target) -> Iterator[Repository]:
    """Our sources on this host; Docker's only where Docker is still to be installed from it."""
    if target.driver and target.driver.repository:
        yield target.driver.repository
    if target.toolkit:
        yield target.toolkit.repository
    if target.docker.repository and docker_engine(survey, target):
        yield target.docker.repository


def found_clashes(survey: Survey, target: Target) -> list[Clash]:
    return sources.clashes(survey["packages"]["repositories"], repositories(survey, target))


def clashing_sources(survey: Survey, target: Target) -> Change | None:
    """Entries of others for the same sources, and leftovers that apt cannot read: with ours beside them apt would refuse everything."""
    found = found_clashes(survey, target)
    if not found:
        return None
    after = edited(survey)
    for clash in found:
        text = after["packages"]["repositories"].get(clash.path)
        rest = sources.without(text, clash) if isinstance(text, str) else None
        if rest is None:
            after["packages"]["repositories"].pop(clash.path, None)
        else:
            after["packages"]["repositories"][clash.path] = rest
    why = "; ".join(f"{each.path}: {each.why}" for each in found)
    return Change(why, f"disable them (kept as *{DISABLED})", after)


def settings_text(survey: Survey, target: Target) -> str:
    """apt waits for locks; unattended upgrades leave the driver set alone (they would split library and loaded module)."""
    guarded = ["^nvidia-", "^libnvidia-", "^libcuda", "^cuda-drivers", "^libxnvctrl"]
    if target.driver and target.driver.hold_kernel:
        guarded += [f"^{each}" for each in KERNEL_PACKAGES]
    lines = ["// written by gpu-bringup", f'DPkg::Lock::Timeout "{target.lock_timeout_s}";']
    if target.driver and target.driver.is_ours and target.driver.hold:
        lines += ["Unattended-Upgrade::Package-Blacklist {", *(f'    "{each}";' for each in guarded), "};"]
    return "\n".join(lines) + "\n"


def apt_settings(survey: Survey, target: Target) -> Change | None:
    """Our own file in apt.conf.d."""
    if target.family != "apt" or survey["packages"]["settings"].get(SETTINGS_FILE) == settings_text(survey, target):
        return None
    after = edited(survey)
    after["packages"]["settings"][SETTINGS_FILE] = settings_text(survey, target)
    return Change(
        f"{SETTINGS_FILE} is not as it shall be",
        "make apt wait for locks, and keep unattended upgrades off the driver set",
        after,
    )
