"""survey + settings + catalog + today -> Plan, or a Refusal that says why and what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from typing_extensions import override

from bringup.catalog import Catalog
from bringup.errors import HostError
from bringup.policy import Refused
from bringup.policy.host import untried
from bringup.policy.interruption import refuse_interruption, refuse_lack_of_room
from bringup.policy.notes import notes
from bringup.policy.target import make_target
from bringup.settings import Settings
from bringup.steps import (
    Change,
    Skip,
    cdi,
    command_line,
    containers,
    device_links,
    docker,
    driver,
    driver_set,
    images,
    kernel_modules,
    limits,
    packages,
    proof,
    runfile,
    sources,
    toolkit_config,
)
from bringup.steps import provenance as provenance_step
from bringup.survey import Survey, known
from bringup.target import Target

StepFunction = Callable[[Survey, Target], Change | Skip | None]


@dataclass(frozen=True)
class Step:
    """What will be done, as far as the survey can tell. `id` is the name of the operation that does it."""

    id: str
    why: str
    what: str
    reboots: bool = False


@dataclass(frozen=True)
class Refusal:
    """What is impossible, with the evidence, and the way out. `accept`: the word for gpu_accept that overrides it."""

    id: str
    reason: str
    way_out: str
    accept: str | None = None

    @override
    def __str__(self) -> str:
        override = f", or add {self.accept} to gpu_accept" if self.accept else ""
        return f"{self.reason}: {self.way_out}{override}"


@dataclass(frozen=True)
class Plan:
    """`target`: what the host shall be; `steps`: what will have to change; `skipped`: what cannot be had here, and why."""

    target: Target
    steps: tuple[Step, ...]
    skipped: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()  # what people should know
    provisional: str = ""  # why the survey may be outdated soon
    only_shown: Refusal | None = None  # why nothing is done by this plan on such a host: a distribution that was never tried


def _on_driver(function: Callable[[Survey, Any], Change | Skip | None]) -> StepFunction:
    return lambda survey, target: function(survey, target.driver) if target.driver else None


def _docker_repository(survey: Survey, target: Target) -> Change | None:
    """Only where Docker has to be installed from it: one that is there is adopted with the source it came from."""
    repository = target.docker.repository
    return packages.repository(survey, repository) if repository and docker.docker_engine(survey, target) else None


def _toolkit_repository(survey: Survey, target: Target) -> Change | None:
    return packages.repository(survey, target.toolkit.repository) if target.toolkit else None


# In the order of design §3. Ids are the names of the operations.
STEPS: tuple[tuple[str, StepFunction], ...] = (
    ("package-manager", lambda survey, target: packages.package_manager(survey)),
    ("clashing-sources", sources.clashing_sources),
    ("apt-settings", sources.apt_settings),
    ("nouveau-out", driver.nouveau_out),
    ("kernel-command-line", command_line.command_line),
    ("driver-repository", _on_driver(driver.driver_repository)),
    ("kernel-headers", _on_driver(driver.kernel_headers)),
    ("runfile-out", _on_driver(runfile.runfile_out)),
    ("driver-packages", _on_driver(driver_set.driver_packages)),
    ("kernel-modules", _on_driver(kernel_modules.kernel_modules)),
    ("driver-loaded", driver.driver_loaded),
    ("reboot", driver.reboot),
    ("driver-services", _on_driver(driver.driver_services)),
    ("device-links", device_links.device_links),
    ("memlock", limits.memlock),
    ("docker-repository", _docker_repository),
    ("docker-engine", docker.docker_engine),
    ("docker-users", lambda survey, target: docker.docker_users(survey, target.docker)),
    ("toolkit-repository", _toolkit_repository),
    ("toolkit-packages", lambda survey, target: containers.toolkit_packages(survey, target.toolkit) if target.toolkit else None),
    (
        "toolkit-leftovers",
        lambda survey, target: containers.toolkit_leftovers(survey, target.toolkit) if target.toolkit else None,
    ),
    ("package-holds", packages.holds),
    ("toolkit-config", toolkit_config.toolkit_config),
    ("cdi-spec", cdi.cdi_spec),
    ("daemon-json", docker.daemon_json),
    ("images", images.images),
    ("image-prewarm", images.image_prewarm),
    ("old-images", images.old_images),
    ("provenance", provenance_step.provenance),
    ("proof-reboot", proof.proof_reboot),
    ("survival", proof.survival),
    ("proof-record", proof.proof_record),
)
STEP_IDS = (*(name for name, _ in STEPS[:-1]), "proof", STEPS[-1][0])


def step_function(name: str) -> StepFunction:
    """The decision behind the operation of this name."""
    return dict(STEPS)[name]


def make_plan(
    survey: Survey, settings: Settings, catalog: Catalog, today: date, locked: Mapping[str, str] | None = None
) -> Plan | Refusal:
    """What the host shall be and what has to change for it. Reads nothing, changes nothing.

    + locked: the digests of tags (`docker.io/pytorch/pytorch:TAG` -> `sha256:…`), from the lock file
    """
    try:
        target = make_target(survey, settings, catalog, today, locked or {})
    except Refused as refused:
        return refusal(refused)
    steps: list[Step] = []
    skipped: list[Step] = []
    now = survey
    for name, function in STEPS:
        try:
            found = function(now, target)
        except HostError as error:
            reason, _, way_out = str(error).rpartition(": ")
            return Refusal(name, reason or way_out, way_out if reason else "mend it")
        if isinstance(found, Skip):
            skipped.append(Step(name, found.why, ""))
        elif found is not None:
            steps.append(Step(name, found.why, found.what, found.reboots))
            now = found.after
    ids = [each.id for each in steps]
    try:
        refuse_interruption(survey, target, ids)
        refuse_lack_of_room(survey, target, ids)
    except Refused as refused:
        return refusal(refused)
    os = known(survey["os"])
    distro = catalog.distro(os["id"], os["version_id"]) if os else None
    shown = untried(distro, survey["arch"], settings) if distro else None
    return Plan(
        target,
        tuple(steps),
        tuple(skipped),
        tuple(notes(survey, target, catalog, distro, settings)),
        provisional(survey),
        refusal(shown) if shown else None,
    )


def refusal(refused: Refused) -> Refusal:
    return Refusal(refused.id, refused.reason, refused.way_out, refused.accept)


def provisional(survey: Survey) -> str:
    """Why what the survey says may not last, or nothing."""
    if survey["packages"]["locks"]:
        holder = survey["packages"]["locks"][0]
        return f"{holder['command']} (process {holder['pid']}) holds {holder['file']}"
    if survey["cloud_init"] == "running":
        return "cloud-init is still running"
    return ""
