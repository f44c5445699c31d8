"""Is an image quick to start? Counted and measured by a probe inside of it, and mended by an image derived from it."""

from __future__ import annotations

from pyinfra import state
from pyinfra.api import FunctionCommand, Host, State

from bringup import probes
from bringup.references import familiar, parts
from bringup.steps.images import not_warm, warm_name
from bringup.target import Target
from facts import live
from facts.images import MEASURE, MEASURE_LIMIT_S, Warmth, parse_warmth
from operations import shell
from operations.guard import Commands, host_operation
from operations.needed import needed
from operations.record import RUN, report_problem
from operations.registry import with_digests

COMPILE_LIMIT_S = 1200

# $1 image, $2 the derived one, $3 seconds; stdin: the probe, which compiles. The derived image starts as the other one does: an entry
# point that the run had set could not be unset again.
COMPILE = r"""
probe=$(cat)
name=gpu-bringup-prewarm-$$
trap 'docker rm -f "$name" >/dev/null 2>&1' EXIT
printf '%s\n' "$probe" | timeout "$3" docker run -i --name "$name" --runtime runc --network none --pull never --user 0:0 \
    --entrypoint '' "$1" python3 - --compile --runs 1 || exit 1
of() { docker image inspect --format "$2" "$1"; }
entrypoint=$(of "$1" '{{json .Config.Entrypoint}}'); [ "$entrypoint" != null ] || entrypoint='[]'
command=$(of "$1" '{{json .Config.Cmd}}'); [ "$command" != null ] || command='[]'
user=$(of "$1" '{{.Config.User}}')
docker commit --change "ENTRYPOINT $entrypoint" --change "CMD $command" --change "USER ${user:-root}" \
    --change "LABEL gpu-bringup.prewarmed-from=$1" "$name" "$2" >/dev/null
"""


def measure(host: Host, reference: str) -> Warmth:
    """What the probe found in the image; `failed` says why it found nothing."""
    given = familiar(reference), probes.source("import_time")
    success, said = shell.run(host, MEASURE, *given, timeout_s=MEASURE_LIMIT_S + 30)
    found = parse_warmth(said.splitlines() if success else [f"problem {said[-200:]}"])
    RUN.of(host.name).measured.setdefault("image_warmth", {})[reference] = found
    return found


def in_words(found: Warmth) -> str:
    """`import of torch takes 4.46 s; 1222 of 1234 modules have no valid .pyc`."""
    if found.get("failed"):
        return f"its start could not be measured ({found['failed']})"
    cold = found["stale"] + found["missing"]
    state_ = f"{cold} of {found['modules']} modules have no valid .pyc file" if cold else "all its .pyc files are valid"
    whole = f" ({found['docker_run_s']:.2f} s with all of docker run)" if found.get("docker_run_s") else ""
    return f"import {found['module']} takes {min(found['import_s']):.2f} s{whole}, {state_}"


def report(host: Host, reference: str) -> None:
    """After a pull: said, and in the host's result."""
    found = measure(host, reference)
    cold = not found.get("failed") and found["stale"] + found["missing"] > 0
    way = ": every start of a container compiles them anew (gpu_image_prewarm: image)" if cold else ""
    host.log(f"{parts(reference).tagged or familiar(reference)}: {in_words(found)}{way}")


@host_operation
def image_prewarm(target: Target) -> Commands:
    """The derived image, measured before and after. One that needs none, or has no torch, gets the name alone."""
    target = with_digests(target)
    if needed("image-prewarm", target) is None:
        return
    cold = not_warm(live.survey(), target) if state.is_executing else target.images
    for reference in cold:
        yield FunctionCommand(_prewarm, (reference,), {})


def _prewarm(state: State, host: Host, reference: str) -> bool:
    warm, before = warm_name(reference), measure(host, reference)
    if before.get("failed") or before["stale"] + before["missing"] == 0:
        host.log(f"{familiar(reference)} stays as it is: {in_words(before)}")
        success, said = shell.run(host, 'docker tag "$1" "$2"', familiar(reference), warm)
    else:
        given = (familiar(reference), warm, str(COMPILE_LIMIT_S))
        success, said = shell.run(host, COMPILE, *given, timeout_s=COMPILE_LIMIT_S + 60, stdin=[probes.source("import_time")])
    if not success:
        report_problem(host, f"{warm} could not be made ({said[-200:]}): set gpu_image_prewarm to report, or make room")
        return False
    after = measure(host, warm)
    host.log(f"{warm}: {in_words(after)}; before, {in_words(before)}")
    return True
