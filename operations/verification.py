"""The proof, as an operation that yields nothing when it passes: a proven run without changes says "no changes"."""

from __future__ import annotations

from pyinfra import host, state

from bringup import verdicts
from bringup.errors import HostError
from bringup.target import Target
from facts import live
from facts.verification import ContainerGpus, CudaStartup
from operations.guard import Commands, host_operation
from operations.record import RUN
from operations.registry import with_digests

PROOF_TIMEOUT_S = 600


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
    gpus = current.get_fact(ContainerGpus, image=image, injection=injection, _ignore_errors=True, _timeout=PROOF_TIMEOUT_S)
    startup = current.get_fact(CudaStartup, image=image, injection=injection, _ignore_errors=True, _timeout=PROOF_TIMEOUT_S)
    result = RUN.of(current.name)
    result.hardware = verdicts.hardware(survey)
    result.measured = {"container_gpus": gpus, "cuda_startup": startup}
    result.checks = verdicts.functional_checks(
        survey,
        target,
        seen=gpus["report"] if gpus else None,
        seen_problem=gpus["problem"] if gpus else "the host did not answer",
        sample=startup["samples"][0] if startup and startup["samples"] else None,
        start_problem=startup["problem"] if startup else "the host did not answer",
    )
    result.function = verdicts.function(result.checks)
    if result.function != "proven":
        raise HostError("not proven: " + "; ".join(verdicts.problems(result.checks)))
    host.noop("proven")
