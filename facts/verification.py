"""What a host can really do, measured inside a container with the image that will be used. These facts change nothing.

Asked alone, without image and injection, they take both from the host's provenance:

    pyinfra inventories/cluster.py fact facts.verification.CudaStartup --json
"""

from __future__ import annotations

import contextlib
import json
import re
from itertools import takewhile
from typing import Any, TypedDict

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from bringup import probes
from bringup.smi import SmiError, SmiReport, parse_smi
from bringup.startup import Sample, sample, summary
from bringup.steps.provenance import PATH
from facts.provenance import FROM_PROVENANCE

BENCHMARK_LIMIT_S = 300  # eight GPUs one after the other; one takes about ten seconds
XID_LINES = 200  # the newest; a sick GPU writes thousands
CONTAINER_LIMIT_S = 180  # one start of an image; torch from a cold disk takes a minute

# $1 image and $2 injection, or empty: then from the provenance. Sets $image and $flags.
GIVEN = (
    FROM_PROVENANCE
    + rf"""
LC_ALL=C; export LC_ALL
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
)

SMI_SCRIPT = (
    GIVEN
    + rf"""
# the kernel log before the driver is asked: a sick one may not answer
log=$(timeout 10 dmesg 2>/dev/null || timeout 10 journalctl -k -b -o cat --no-pager 2>/dev/null) && [ -n "$log" ] || echo 'log unreadable'
printf '%s\n' "$log" | grep -F 'NVRM: Xid' | tail -n {XID_LINES} | sed 's/^/xid /'
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


BENCHMARK_SCRIPT = (
    GIVEN
    + r"""
probe=$3 limit=$4 argument=$5
busy=$(timeout 30 nvidia-smi --query-compute-apps=pid,process_name --format=csv,noheader 2>/dev/null | grep -v '^\[')
[ -z "$busy" ] || { printf 'skipped GPUs in use are not benchmarked: %s\n' "$busy" | tr '\n' ' '; exit 0; }
timeout 30 nvidia-smi topo -m 2>/dev/null | sed -n 's/^/topology /p'
said=$(printf '%s' "$probe" | timeout "$limit" docker run -i --rm --name "$name" $flags "$image" python3 -u - $argument 2>&1)
printf 'exit %s\n' $?
printf '%s\n' "$said"
"""
)


class ContainerReport(TypedDict):
    """`problem`: why there is no report, in the words of Docker or nvidia-smi; None when there is one.

    `xids`: lines of the kernel log since boot in which the driver writes an error; None where the log cannot be read.
    """

    problem: str | None
    report: SmiReport | None
    xids: list[str] | None


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
            return ContainerReport(problem=output[0].removeprefix("problem "), report=None, xids=None)
        at = next((place for place, line in enumerate(output) if line.startswith("exit ")), 0)
        xids = None if "log unreadable" in output[:at] else [each[4:] for each in output[:at] if each.startswith("xid ")]
        text = "\n".join(output[at + 1 :])
        try:
            return ContainerReport(problem=None, report=parse_smi(text), xids=xids)
        except SmiError as error:
            return ContainerReport(problem=f"{docker_reason(text) or error} ({output[at]})", report=None, xids=xids)


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


class Benchmark(TypedDict):
    """`problem`: why there is no result; `skipped`: why none was tried. `result`: the probe's (bringup/probes/). `link`: NV18, PHB ..."""

    problem: str | None
    skipped: str | None
    link: str | None
    result: dict[str, Any] | None


class GpuBenchmark(FactBase[Benchmark]):
    """Speed of every GPU, alone and together, with its results checked; GPUs in use are left alone.

    + image, injection: as above
    + sustained_s: seconds of load on all GPUs at once at the end
    """

    @override
    def command(self, image: str | None = None, injection: str | None = None, sustained_s: int = 0) -> StringCommand:
        limit = str(BENCHMARK_LIMIT_S + int(sustained_s))
        return script(BENCHMARK_SCRIPT, image, injection, probes.source("gpu_benchmark"), limit, str(int(sustained_s)))

    @override
    def process(self, output: list[str]) -> Benchmark:
        return benchmark(output)


class NcclBenchmark(FactBase[Benchmark]):
    """NCCL's all-reduce over all GPUs of the host; with one GPU there is nothing to reduce over.

    + image, injection: as above
    """

    @override
    def command(self, image: str | None = None, injection: str | None = None) -> StringCommand:
        return script(BENCHMARK_SCRIPT, image, injection, probes.source("nccl_benchmark"), str(BENCHMARK_LIMIT_S), "")

    @override
    def process(self, output: list[str]) -> Benchmark:
        return benchmark(output)


def benchmark(output: list[str]) -> Benchmark:
    """From what BENCHMARK_SCRIPT printed; what is no JSON of the probe is a problem in its last words."""
    found = Benchmark(problem=None, skipped=None, link=None, result=None)
    first = output[0] if output else ""
    for key in ("problem", "skipped"):
        if first.startswith(f"{key} "):
            found[key] = first.partition(" ")[2].strip()
            return found
    for line in output:
        link = re.match(r"topology GPU0\s+X\s+(NV\d+|PIX|PXB|PHB|NODE|SYS)\b", line)
        found["link"] = link.group(1) if link else found["link"]
    for line in reversed(output):
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                read = json.loads(line)
                if isinstance(read, dict) and "failed" in read:
                    found["result"] = read
                    return found
    code = next((each for each in output if each.startswith("exit ")), "no exit status")
    said = next((each for each in reversed(output) if each.strip() and not each.startswith(("exit ", "topology "))), "nothing")
    found["problem"] = f"{docker_reason(chr(10).join(output)) or f'the benchmark gave no result but: {said[:300]}'} ({code})"
    return found


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
