"""What was measured -> checks, and the two words of a host's outcome. Unknown is never a pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bringup.container_limits import Limits, limit_checks
from bringup.errors import HostError
from bringup.report import Check, Function, Hardware
from bringup.steps import cdi, containers, docker, driver_set, images
from bringup.steps import driver as driver_steps
from bringup.survey import Survey, known, loaded_version, module_kind, unreadable
from bringup.target import Target

if TYPE_CHECKING:
    from bringup.smi import SmiReport
    from bringup.startup import Sample


def functional_checks(
    survey: Survey,
    target: Target,
    seen: SmiReport | None,
    seen_problem: str | None,
    sample: Sample | None,
    start_problem: str | None,
    limits: Limits | None,
) -> list[Check]:
    """The checks of the quick proof, in the order in which a failure explains the later ones."""
    checks = [_packages(survey, target), _driver(survey, target), _services(survey, target)]
    checks += [_cdi(survey, target), _runtime(survey, target), _images(survey, target)]
    checks.append(_gpus(target, seen, seen_problem))
    checks.append(_kernel(target, sample, start_problem, seen))
    checks += limit_checks(limits, target)
    return [each for each in checks if each]


def function(checks: Iterable[Check]) -> Function:
    """Proven when every check passed; one that was skipped makes it not proven, and so does having looked at nothing."""
    found = [each.status in ("pass", "warn") for each in checks]
    return "proven" if found and all(found) else "not proven"


def problems(checks: Iterable[Check]) -> list[str]:
    """One sentence for each check that stands in the way."""
    return [f"{each.name}: {each.detail}" for each in checks if each.status in ("fail", "skipped")]


def _packages(survey: Survey, target: Target) -> Check:
    """Half removed ones too: what they lack shows in containers only, in words that do not name the package."""
    found = [driver_set.driver_packages(survey, target.driver)] if target.driver else []
    found += [containers.toolkit_packages(survey, target.toolkit)] if target.toolkit else []
    wrong = [each.why for each in found if each]
    return Check("packages", "fail", "; ".join(wrong)) if wrong else Check("packages", "pass", "driver and container toolkit")


def _services(survey: Survey, target: Target) -> Check:
    off = driver_steps.driver_services(survey, target.driver) if target.driver else None
    return Check("driver-services", "fail", off.why) if off else Check("driver-services", "pass", "run")


def _driver(survey: Survey, target: Target) -> Check:
    if target.driver is None:
        return Check("driver", "skipped", "no driver is wanted on this host")
    unloaded = driver_steps.driver_loaded(survey, target)
    if unloaded is not None:
        return Check("driver", "fail", unloaded.why)
    pending = driver_steps.reboot(survey, target)
    if pending is not None:
        return Check("driver", "fail", f"reboot-pending: {pending.why}")
    problem = driver_steps.wrong_version(survey, target.driver)
    if problem:
        return Check("driver", "fail", problem)
    return Check("driver", "pass", f"{loaded_version(survey)} ({module_kind(survey)} module) is loaded and wanted")


def _cdi(survey: Survey, target: Target) -> Check:
    if target.docker.injection != "cdi":
        return Check("cdi-spec", "pass", "not needed: GPUs are injected by the nvidia runtime")
    problem = cdi.stale_cdi(survey)
    return (
        Check("cdi-spec", "fail", problem) if problem else Check("cdi-spec", "pass", "of the loaded driver, with all its devices")
    )


def _runtime(survey: Survey, target: Target) -> Check:
    info = survey["docker"]["info"]
    why = unreadable(info)
    if why is not None:
        return Check("docker", "fail", f"the daemon does not answer: {why}")
    if info is None:
        return Check("docker", "fail", "Docker is not installed")
    try:
        change = docker.daemon_json(survey, target)
    except HostError as error:
        return Check("docker", "fail", str(error))
    if change is not None:
        return Check("docker", "fail", change.why)
    return Check("docker", "pass", f"{survey['docker']['version']} runs with what is wanted")


def _images(survey: Survey, target: Target) -> Check:
    lacking = images.missing_images(survey, target)
    if lacking or not target.images:
        return Check("image", "fail", f"{', '.join(lacking) or 'no image'} not on the host")
    return Check("image", "pass", f"{', '.join(target.images)} on the host")


def _gpus(target: Target, seen: SmiReport | None, problem: str | None) -> Check:
    name = "gpus-in-container"
    if seen is None:
        return Check(name, "fail", problem or "nvidia-smi in the container was not tried")
    found = seen["gpus"]
    if len(found) != target.expected_gpus:
        said = f"{len(found)} seen in the container, {target.expected_gpus} expected"
        return Check(name, "fail", said, measured=f"{len(found)} GPUs", expected=f"{target.expected_gpus} GPUs")
    names = {each["name"] or "?" for each in found}
    return Check(name, "pass", f"{len(found)} × {', '.join(sorted(names))}, driver {seen['driver_version']}")


def _kernel(target: Target, sample: Sample | None, problem: str | None, seen: SmiReport | None) -> Check:
    name = "cuda-kernel"
    if sample is None:
        return Check(name, "fail", problem or "no container was started")
    if sample["failed"]:
        return Check(name, "fail", sample["failed"])
    count = len(sample["probe"].get("gpus", []))
    right = f"a right result from a kernel on {count} GPU{'s' * (count != 1)}, by {sample['probe'].get('torch')}"
    if count == 1 and seen and seen["gpus"] and all(each["mig"] == "Enabled" for each in seen["gpus"]):
        return Check(name, "pass", f"{right} (a process sees one MIG instance)")
    if count != target.expected_gpus:
        said = f"{right}; {target.expected_gpus} are expected"
        return Check(name, "fail", said, measured=f"{count} GPUs", expected=f"{target.expected_gpus} GPUs")
    return Check(name, "pass", right)


def hardware(survey: Survey) -> Hardware:
    """`simulated` when the driver says of itself that it is a stand-in; `unknown` when no driver answers."""
    text = known(survey["driver"]["loaded_text"])
    if text is None:
        return "unknown"
    return "simulated" if "stand-in" in text else "real"
