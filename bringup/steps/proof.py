"""How thorough a host's proof must be now, and the steps that it takes: what is disturbed for it, and what is noted of it."""

from __future__ import annotations

import json

from bringup import survival as kept_result
from bringup.errors import HostError
from bringup.settings import Verify
from bringup.steps import Change, Skip, cdi, containers, docker, driver, edited
from bringup.steps.images import missing_images
from bringup.steps.packages import PREDICTED
from bringup.survey import Survey, known, loaded_version
from bringup.survival import PATH, SCHEMA, Subject
from bringup.target import Target

DISTURBANCES: dict[Verify, tuple[str, ...]] = {"standard": ("daemon-reload",), "full": ("daemon-reload", "docker-restart")}
THOROUGH = tuple(DISTURBANCES)


def subject(survey: Survey, target: Target) -> Subject:
    """What a proof is of: where one of these differs, an old one says nothing any more."""
    return {
        "boot_id": known(survey["boot_id"]),
        "kernel": survey["kernel"],
        "driver": loaded_version(survey),
        "toolkit": known(survey["toolkit_version"]),
        "docker": known(survey["docker"]["version"]),
        "injection": target.docker.injection,
        "image": target.images[0] if target.images else None,
    }


def level(survey: Survey, target: Target) -> Verify:
    """`auto` is standard where the last proof was of something else, and quick otherwise: also where somebody works on the host."""
    if target.verify != "auto":
        return target.verify
    kept = kept_result.kept(survey["proof"])
    if kept is not None and kept.get("proven") in THOROUGH and kept_result.differing(kept, subject(survey, target)) == []:
        return "quick"
    return "quick" if driver.busy(survey) else "standard"


def wanted_disturbances(survey: Survey, target: Target) -> tuple[str, ...]:
    return DISTURBANCES.get(level(survey, target), ())


def proof_reboot(survey: Survey, target: Target) -> Change | None:
    """The full proof is made in a boot that the host came to as it shall be, where gpu_reboot allows one for that."""
    if target.driver is None or level(survey, target) != "full" or not in_order(survey, target):
        return None
    boot, kept = known(survey["boot_id"]), kept_result.kept(survey["proof"])
    forbidden = target.reboot == "never" or (target.reboot == "if-idle" and driver.busy(survey))
    if boot is None or forbidden or (kept and kept.get("rebooted") == boot):
        return None
    after = edited(survey)
    after["boot_id"] = PREDICTED
    after["proof"] = rebooted(after, target)
    if boot == PREDICTED:  # one reboot is enough for all
        return Change("the reboot of this run is part of the full proof", "note it", after)
    return Change("it was not tried whether the GPUs work after a reboot", "reboot", after, reboots=True)


def rebooted(survey: Survey, target: Target) -> str:
    """A kept result that says only that this boot is one of ours, of a host that was in order before."""
    return json.dumps({"schema": SCHEMA, "of": subject(survey, target), "steps": [], "rebooted": known(survey["boot_id"])}) + "\n"


def survival(survey: Survey, target: Target) -> Change | None:
    """What is wanted was not tried on the host as it is, or not survived. A host that is not in order is not disturbed."""
    wanted = wanted_disturbances(survey, target)
    if target.driver is None or not wanted or not in_order(survey, target):
        return None
    now = subject(survey, target)
    lacking = [each for each in kept_result.survival_checks(survey["proof"], now, wanted) if each.status != "pass"]
    if not lacking:
        return None
    after = edited(survey)
    good = {"failed": None, "gpus": [""]}
    steps = [{"after": each, "exit": 0, "probe": good, "said": ""} for each in ("start", *wanted)]
    after["proof"] = json.dumps({"schema": SCHEMA, "of": now, "steps": steps, "rebooted": kept_result.rebooted(survey["proof"])})
    names = ", ".join(each.name.removeprefix("survival-") for each in lacking)
    return Change(f"{names}: {lacking[0].detail}", f"run a kernel in one container before and after {names}", after)


def in_order(survey: Survey, target: Target) -> bool:
    """Is all as it shall be that a container with a GPU needs? What is not is the proof's to name."""
    try:
        pending = (
            target.driver is None or (loaded_version(survey) != PREDICTED and driver.wrong_version(survey, target.driver)),
            driver.driver_loaded(survey, target),
            driver.reboot(survey, target),
            target.toolkit and containers.toolkit_packages(survey, target.toolkit),
            docker.docker_engine(survey, target),
            cdi.cdi_spec(survey, target),
            docker.daemon_json(survey, target),
            missing_images(survey, target),
        )
    except HostError:
        return False
    return not any(pending)


def proof_record(survey: Survey, target: Target) -> Change | Skip | None:
    """What was proven in full is noted, so that `auto` need not do it again."""
    reached = level(survey, target)
    kept = kept_result.kept(survey["proof"])
    if target.driver is None or reached not in THOROUGH or kept is None or kept_result.differing(kept, subject(survey, target)):
        return None
    if kept.get("proven") in THOROUGH[THOROUGH.index(reached) :]:
        return None
    after = edited(survey)
    after["proof"] = recorded(survey, target)
    return Change(f"{PATH} holds no {reached} proof of this host as it is", "note the proof once it is made", after)


def recorded(survey: Survey, target: Target) -> str:
    """The kept file with the level that was proven."""
    return json.dumps({**(kept_result.kept(survey["proof"]) or {}), "proven": level(survey, target)}) + "\n"
