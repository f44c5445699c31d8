"""The proof, as an operation that yields nothing when it passes: a proven run without changes says "no changes"."""

from __future__ import annotations

from typing import Any

from pyinfra import host, state
from pyinfra.connectors.local import LocalConnector

from bringup import catalog, docker_ways, health, performance, startup_advice, survival, topology, verdicts
from bringup.errors import HostError
from bringup.limit_checks import limit_checks
from bringup.remedies import with_remedies
from bringup.report import Check, HostResult, textfile
from bringup.smi import SmiReport
from bringup.startup import Sample
from bringup.steps import proof as steps
from bringup.survey import known
from bringup.target import Target
from facts import live
from facts.docker_ways import DockerWays
from facts.files import FileText
from facts.limits import Found, LimitsInPlace, LoginLimits
from facts.verification import Benchmark, ContainerGpus, ContainerLimits, CudaStartup, GpuBenchmark, NcclBenchmark, Startup
from operations.files import write_file
from operations.guard import Commands, host_operation
from operations.record import RUN
from operations.registry import with_digests

PROOF_TIMEOUT_S = 600
SUSTAINED_S = 60
STARTS = 3  # of a thorough proof: one cold and two warm


@host_operation
def proof(target: Target) -> Commands:
    """Look, start a container, run a kernel on every GPU; the host is proven, or has failed with what is missing."""
    yield from ()
    if not state.is_executing:
        return host.noop("proven at the end of the run")
    if target.driver is None or target.verify == "off":
        return host.noop("no proof is asked for")
    target, current = with_digests(target), live.current_host()
    image, injection = target.images[0], target.docker.injection
    survey = live.survey(fresh=True)
    given: dict[str, Any] = {"image": image, "injection": injection, "_ignore_errors": True, "_timeout": PROOF_TIMEOUT_S}
    gpus = current.get_fact(ContainerGpus, **given)
    level = steps.level(survey, target)
    runs = STARTS if level in steps.THOROUGH else 1
    startup = current.get_fact(CudaStartup, runs=runs, **given)
    if startup and startup["samples"] and all(each["void"] for each in startup["samples"]):  # a clock is not set twice
        startup = current.get_fact(CudaStartup, runs=runs, **given)
    start = _start(startup)
    limits = current.get_fact(ContainerLimits, **given)
    result = RUN.of(current.name)
    result.hardware = verdicts.hardware(survey)
    result.measured = {"container_gpus": gpus, "cuda_startup": startup, "container_limits": limits}
    result.checks = verdicts.functional_checks(
        survey,
        target,
        seen=gpus["report"] if gpus else None,
        seen_problem=gpus["problem"] if gpus else "the host did not answer",
        sample=start,
        start_problem=startup["problem"] if startup else "the host did not answer",
        limits=limits,
    )
    result.checks += limit_checks(survey, target, read_limits(target, image))
    seen = gpus["report"] if gpus else None
    if gpus and seen:
        result.checks += health.health_checks(seen, gpus["xids"], catalog.load())
        result.checks += topology.topology_checks(gpus["topology"], seen["gpus"], survey)
        timed = startup_advice.advice(start, seen["gpus"]) if start else None
        result.checks += [timed] if timed else []
    wanted = steps.wanted_disturbances(survey, target)
    result.checks += survival.survival_checks(survey["proof"], steps.subject(survey, target), wanted)
    if level == "full":
        result.checks += survival.reboot_checks(survey["proof"], known(survey["boot_id"]))
    result.function = verdicts.function(result.checks)
    if result.function == "proven" and seen and level in steps.THOROUGH:
        ways = current.get_fact(DockerWays, image=image, _ignore_errors=True, _timeout=PROOF_TIMEOUT_S)
        result.measured["docker_ways"] = ways
        result.checks.append(docker_ways.ways_check(ways, len(seen["gpus"]), injection))
        result.function = verdicts.function(result.checks)
        measure(result, target, image, seen, sustained_s=SUSTAINED_S if level == "full" else 0)
    with_remedies(result.checks)
    yield from _textfile(result, target)
    if result.function != "proven":
        raise HostError("not proven: " + "; ".join(verdicts.problems(result.checks)))
    if result.performance == "below":
        raise HostError("below: " + "; ".join(verdicts.problems(result.checks)))
    if result.performance != "within floors" and target.settings.get("require_floors"):
        raise HostError(f"performance is {result.performance}, and gpu_require_floors asks for a judgement")
    host.noop("proven")


def read_limits(target: Target, image: str) -> dict[str, Found]:
    """Where memlock is set. This machine itself is not logged in to, so what its shell has says nothing of a login."""
    if target.memlock is None:
        return {}
    current, asked = live.current_host(), {"_ignore_errors": True, "_timeout": PROOF_TIMEOUT_S}
    silent = Found(memlock=[], open_files=[], problem="the host did not answer")
    places = {"unit": silent, "user": silent} | (current.get_fact(LimitsInPlace, image=image, **asked) or {})
    if not isinstance(current.connector, LocalConnector):
        places |= {"login": silent} | (current.get_fact(LoginLimits, _sudo=False, **asked) or {})
    return places


def _textfile(result: HostResult, target: Target) -> Commands:
    """Where gpu_textfile names a folder: also of a host that is not proven."""
    folder = target.settings.get("textfile")
    if not folder:
        return
    path, text = f"{str(folder).rstrip('/')}/{textfile.NAME}", textfile.metrics(result)
    if live.current_host().get_fact(FileText, path=path, _ignore_errors=True) != text:
        yield write_file(path, text)


def _start(startup: Startup | None) -> Sample | None:
    """The start that is judged: one that failed, else the first whose times mean something, else the first."""
    samples = startup["samples"] if startup else []
    failed = next((each for each in samples if each["failed"]), None)
    return failed or next((each for each in samples if not each["void"]), samples[0] if samples else None)


def measure(result: HostResult, target: Target, image: str, seen: SmiReport, sustained_s: int) -> None:
    """The benchmarks, where functions are proven; their results may still make the host not proven."""
    if result.hardware == "simulated":
        result.checks.append(Check("speed", "skipped", "a simulated GPU has no speed"))
        return
    current, given = live.current_host(), {"image": image, "injection": target.docker.injection}
    silent = Benchmark(problem="the host did not answer", skipped=None, link=None, result=None)
    asked = {"_ignore_errors": True, "_timeout": PROOF_TIMEOUT_S}
    gpu: Benchmark = current.get_fact(GpuBenchmark, **given, sustained_s=sustained_s, **asked) or silent
    result.measured["gpu_benchmark"] = gpu
    nccl: Benchmark | None = None
    if len(seen["gpus"]) > 1 and gpu["skipped"] is None:
        nccl = current.get_fact(NcclBenchmark, **given, **asked) or silent
        result.measured["nccl_benchmark"] = nccl
    functional, speed = performance.benchmark_checks(gpu, nccl, seen, catalog.load())
    result.function = verdicts.function([*result.checks, *functional])
    result.performance = performance.performance(speed)
    result.checks += [*functional, *speed]
