"""A host's whole target, from survey, settings, catalog and date. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from typing import Any

from bringup.catalog import Catalog
from bringup.limits import memlock_to_be_had
from bringup.policy.command_line import choose_command_line
from bringup.policy.docker import choose_docker
from bringup.policy.driver import choose_driver
from bringup.policy.engine import refuse_unfit_engine
from bringup.policy.gpus import known_gpus
from bringup.policy.host import refuse_what_is_not_ours, supported_distro
from bringup.policy.images import choose_images, how_pulled
from bringup.policy.package_lists import refuse_contradictions
from bringup.policy.repositories import repository
from bringup.settings import Settings
from bringup.survey import Survey, gpus
from bringup.target import Target, Toolkit

BLOCKED = ("nouveau", "nova_core", "nova_drm")  # in-tree drivers that bind NVIDIA GPUs; the Rust ones from kernel 7.0 on


def make_target(survey: Survey, settings: Settings, catalog: Catalog, today: date, locked: Mapping[str, str]) -> Target:
    """+ locked: digests of tags, from the lock file. Raises Refused."""
    refuse_what_is_not_ours(survey, settings)
    distro = supported_distro(survey, catalog)
    command_line = choose_command_line(survey, settings)
    refuse_unfit_engine(survey, settings, catalog)
    boards = known_gpus(survey, settings, catalog)
    driver = choose_driver(survey, settings, catalog, distro, boards, today) if boards else None
    toolkit = None
    if boards:
        toolkit = Toolkit(
            packages=catalog.toolkit.packages,
            floor=catalog.toolkit.floor,
            repository=repository(settings, catalog, "nvidia-toolkit", distro, survey["arch"]),
            hold=settings.hold_packages != "none",
            leftovers=catalog.toolkit.leftovers,
        )
    asked_anew: Mapping[str, str] = {} if settings.images_refresh else locked
    images = choose_images(settings, catalog, driver.wanted, boards, survey["arch"], asked_anew) if driver else ()
    target = Target(
        family=distro.family,
        driver=driver,
        blocked_modules=BLOCKED if driver and driver.source != "preinstalled" else (),
        command_line=command_line,
        docker=choose_docker(survey, settings, catalog, distro, gpu=bool(boards)),
        toolkit=toolkit,
        memlock=memlock_to_be_had(settings.memlock, survey),
        images=images,
        pulling=how_pulled(settings, catalog, images),
        reboot=settings.reboot,
        reboot_timeout_s=settings.reboot_timeout,
        lock_timeout_s=settings.lock_timeout,
        accepted=settings.accept,
        verify=settings.verify,
        expected_gpus=settings.expected_count if settings.expected_count is not None else len(gpus(survey)),
        settings=chosen(settings),
    )
    refuse_contradictions(survey, target)
    return target


def chosen(settings: Settings) -> dict[str, Any]:
    """The settings that differ from their defaults, JSON-able; without what is no matter of the host's: where results are written, and
    how images come to it."""
    default = Settings()
    found: dict[str, Any] = {}
    for each in fields(Settings):
        if each.name in ("reports", "images_lock", "images_refresh", "images_archive", "pull_parallel", "registry_login"):
            continue
        value = getattr(settings, each.name)
        if value != getattr(default, each.name):
            found[each.name] = sorted(value) if isinstance(value, frozenset) else value
    found["images_own"] = {name: each.pinned for name, each in settings.images_own.items()}
    found["repositories"] = {name: override.url for name, override in settings.repositories.items()}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items() if value}
