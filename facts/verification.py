"""What a host can really do, measured inside a container with the image that will be used. These facts change nothing.

Asked alone, without image and injection, they take both from the host's provenance:

    pyinfra inventories/cluster.py fact facts.verification.CudaStartup --json
"""

from __future__ import annotations

from itertools import takewhile
from typing import TypedDict

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from bringup import probes
from bringup.smi import SmiError, SmiReport, parse_smi
from bringup.startup import Sample, sample, summary
from bringup.steps.provenance import PATH

CONTAINER_LIMIT_S = 180  # one start of an image; torch from a cold disk takes a minute

# $1 image and $2 injection, or empty: then from the provenance (ours: one top-level key a line). Sets $image and $flags.
GIVEN = rf"""
LC_ALL=C; export LC_ALL
from_provenance() {{ sed -n "s/^  \"$1\": \"\(.*\)\",\{{0,1\}}$/\1/p" {PATH} 2>/dev/null; }}
image=$1; [ -n "$image" ] || image=$(from_provenance proof_image)
injection=$2; [ -n "$injection" ] || injection=$(from_provenance injection)
[ -n "$image" ] || {{ echo "problem no image is named, and {PATH} names none: run deploys/gpu_host.py first"; exit 0; }}
case $injection in
cdi) flags='--runtime runc --device nvidia.com/gpu=all' ;;
runtime) flags='--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility' ;;
*) echo "problem no injection is named, and {PATH} names none"; exit 0 ;;
esac
flags="$flags --network none --pull never"
name=gpu-bringup-proof-$$
trap 'docker rm -f "$name" >/dev/null 2>&1' EXIT
"""

SMI_SCRIPT = (
    GIVEN
    + rf"""
said=$(timeout {CONTAINER_LIMIT_S} docker run --rm --name "$name" $flags "$image" nvidia-smi -q -x 2>&1)
printf 'exit %s\n' $?
printf '%s\n' "$said"
"""
)

STARTUP_SCRIPT = (
    GIVEN
    + rf"""
runs=$3 probe=$4
while [ "$runs" -gt 0 ]; do
    before=$(date +%s%N)
    said=$(docker create -i --name "$name" $flags "$image" python3 -u - 2>&1) || {{ printf 'problem %s\n' "$said" | tr '\n' ' '; exit 0; }}
    created=$(date +%s%N)
    said=$(printf '%s' "$probe" | timeout {CONTAINER_LIMIT_S} docker start -a -i "$name" 2>&1); code=$?
    after=$(date +%s%N)
    printf 'run %s %s %s %s %s\n' "$before" "$created" "$after" "$code" "$(docker inspect -f '{{{{.State.StartedAt}}}}' "$name")"
    printf '%s\n' "$said" | sed 's/^/|/'
    docker rm -f "$name" >/dev/null 2>&1
    runs=$((runs - 1))
done
"""
)


class ContainerReport(TypedDict):
    """`problem`: why there is no report, in the words of Docker or nvidia-smi; None when there is one."""

    problem: str | None
    report: SmiReport | None


class ContainerGpus(FactBase[ContainerReport]):
    """nvidia-smi inside a container.

    + image: reference that is on the host, or None for the provenance's
    + injection: `cdi`, `runtime`, or None for the provenance's
    """

    @override
    def command(self, image: str | None = None, injection: str | None = None) -> StringCommand:
        return script(SMI_SCRIPT, image, injection)

    @override
    def process(self, output: list[str]) -> ContainerReport:
        if output[0].startswith("problem "):
            return ContainerReport(problem=output[0].removeprefix("problem "), report=None)
        text = "\n".join(output[1:])
        try:
            return ContainerReport(problem=None, report=parse_smi(text))
        except SmiError as error:
            return ContainerReport(problem=f"{docker_reason(text) or error} ({output[0]})", report=None)


class Startup(TypedDict):
    """`problem`: why no container was started. `stages_ms`: per stage min, median, max over the good samples."""

    problem: str | None
    stages_ms: dict[str, dict[str, float]]
    samples: list[Sample]


class CudaStartup(FactBase[Startup]):
    """Time to a usable GPU by stage, over `runs` container starts; each ends with a kernel on every GPU and its result checked.

    + image: reference that is on the host, or None for the provenance's
    + injection: `cdi`, `runtime`, or None for the provenance's
    + runs: number of starts, one after the other
    """

    @override
    def command(self, image: str | None = None, injection: str | None = None, runs: int = 1) -> StringCommand:
        return script(STARTUP_SCRIPT, image, injection, str(int(runs)), probes.source("cuda_startup"))

    @override
    def process(self, output: list[str]) -> Startup:
        samples: list[Sample] = []
        problem: str | None = None
        for at, line in enumerate(output):
            if line.startswith("run "):
                before, created, after, code, started = (*line.split(" ", 5)[1:], "")[:5]
                printed = [each[1:] for each in takewhile(is_printed, output[at + 1 :])]
                try:
                    samples.append(sample(int(before), int(created), int(after), started, int(code), printed))
                except ValueError as error:  # Docker has died, or it is another program of that name
                    problem = f"docker inspect does not tell when the container was started: {error}"
            elif line.startswith("problem "):
                problem = docker_reason(line) or line.removeprefix("problem ").strip()
        return Startup(problem=problem, stages_ms=summary(samples), samples=samples)


def is_printed(line: str) -> bool:
    """A line that the probe printed."""
    return line.startswith("|")


def script(text: str, image: str | None, injection: str | None, *more: str) -> StringCommand:
    given = (image or "", injection or "", *more)
    return StringCommand("sh", "-c", QuoteString(text), "sh", *(QuoteString(each) for each in given))


def docker_reason(text: str) -> str | None:
    """Docker's own reason, without the OCI runtime's nesting around it."""
    for line in text.splitlines():
        if "Error response from daemon: " in line:
            return line.split("Error response from daemon: ", 1)[1].strip()[:400]
    return None
