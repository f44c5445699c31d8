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

from pyinfra.api import FactBase, StringCommand
from typing_extensions import override

from bringup import probes
from bringup import survival as kept_result
from bringup.container_limits import Inside, Limits
from bringup.smi import SmiError, SmiReport, parse_smi
from bringup.startup import WAYS, Sample, sample, summary
from bringup.startup_advice import advice, compared
from bringup.topology import Topology
from facts.in_container import BENCHMARK_LIMIT_S, BENCHMARK_SCRIPT, INSIDE, LIMITS_SCRIPT, SMI_SCRIPT, STARTUP_SCRIPT, script


class ContainerReport(TypedDict):
    """`problem`: why there is no report, in the words of Docker or nvidia-smi; None when there is one.

    `xids`: lines of the kernel log since boot in which the driver writes an error; None where the log cannot be read.
    `topology`: how the GPUs are joined, as the host says it.
    """

    problem: str | None
    report: SmiReport | None
    xids: list[str] | None
    topology: Topology


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
        at = next((place for place, line in enumerate(output) if line.startswith("exit ")), 0)
        host, text = output[:at], "\n".join(output[at + 1 :])
        found = ContainerReport(problem=None, report=None, xids=None, topology=topology(host))
        if output[0].startswith("problem "):
            found["problem"] = output[0].removeprefix("problem ")
            return found
        found["xids"] = None if "log unreadable" in host else after("xid ", host)
        try:
            found["report"] = parse_smi(text)
        except SmiError as error:
            found["problem"] = f"{docker_reason(text) or error} ({output[at]})"
        return found


def after(mark: str, lines: list[str]) -> list[str]:
    """What stands behind a mark, of the lines that begin with it."""
    return [each.removeprefix(mark) for each in lines if each.startswith(mark)]


def topology(host: list[str]) -> Topology:
    """From the lines that the host gave beside the container's."""
    nodes = after("nodes ", host)
    return Topology(
        nvlink=after("nvlink ", host) or None,
        acs=after("acs ", host) or None,
        iommu={gpu: kind for gpu, _, kind in (each.partition(" ") for each in after("iommu ", host))},
        numa_nodes=int(nodes[0]) if nodes and nodes[0].isdigit() else None,
    )


class Startup(TypedDict):
    """`problem`: why a container was not started. `stages_ms`: per stage min, median, max over the good samples.

    `cold_ms`: the stages of the first start, with whatever caches the host had; `warm_ms`: min, median, max of the later ones.
    """

    problem: str | None
    stages_ms: dict[str, dict[str, float]]
    cold_ms: dict[str, float]
    warm_ms: dict[str, dict[str, float]]
    samples: list[Sample]


class CudaStartup(FactBase[Startup]):
    """Time to a usable GPU by stage, over `runs` container starts; each ends with a kernel on every GPU and its result checked.

    + image: reference that is on the host, or None for the provenance's
    + injection: `cdi`, `runtime`, or None for the provenance's
    + runs: number of starts, one after the other: the first is the cold one
    """

    @override
    def command(self, image: str | None = None, injection: str | None = None, runs: int = 1) -> StringCommand:
        return script(STARTUP_SCRIPT, image, injection, str(int(runs)), probes.source("cuda_startup"), "")

    @override
    def process(self, output: list[str]) -> Startup:
        return next(iter(series(output).values()), no_start("the host did not answer"))


class Comparison(TypedDict):
    """`ways`: by cdi, runtime, bare. `said`: what they cost each other, the stage that takes the most and what helps, a sentence each."""

    ways: dict[str, Startup]
    said: list[str]


class StartupComparison(FactBase[Comparison]):
    """The same program by CDI, by the nvidia runtime and bare (by the host's own Python): what a way of injection costs.

    + image: reference that is on the host, or None for the provenance's
    + runs: number of starts of each
    """

    @override
    def command(self, image: str | None = None, runs: int = 3) -> StringCommand:
        return script(STARTUP_SCRIPT, image, "runtime", str(int(runs)), probes.source("cuda_startup"), " ".join(WAYS))

    @override
    def process(self, output: list[str]) -> Comparison:
        ways = series(output)
        said = compared({way: each["stages_ms"].get("total", {}).get("median") for way, each in ways.items()})
        for way, each in ways.items():
            slowest = advice(each["samples"][-1], []) if each["samples"] else None
            said += [f"{way}: {slowest.detail}"] if slowest else []
        return Comparison(ways=ways, said=said)


def series(output: list[str]) -> dict[str, Startup]:
    """By way of injection. Lines as STARTUP_SCRIPT prints them; a problem is of the way that comes next or was last."""
    found: dict[str, Startup] = {}
    way = ""
    for at, line in enumerate(output):
        if line.startswith("run "):
            way, before, created, after_, code, started = (*line.split(" ", 6)[1:], "")[:6]
            of_way = found.setdefault(way, no_start(None))
            printed = [each[1:] for each in takewhile(is_printed, output[at + 1 :])]
            try:
                of_way["samples"].append(sample(int(before), int(created), int(after_), started, int(code), printed))
            except ValueError as error:  # Docker has died, or it is another program of that name
                of_way["problem"] = f"docker inspect does not tell when the container was started: {error}"
        elif line.startswith("problem "):
            found.setdefault(way, no_start(None))["problem"] = docker_reason(line) or line.removeprefix("problem ").strip()
    for each in found.values():
        good = [one for one in each["samples"] if one["void"] is None and one["failed"] is None]
        each["stages_ms"] = summary(each["samples"])
        each["cold_ms"] = good[0]["stages_ms"] if good and good[0] is each["samples"][0] else {}
        each["warm_ms"] = summary(each["samples"][1:])
    return found


def no_start(problem: str | None) -> Startup:
    return Startup(problem=problem, stages_ms={}, cold_ms={}, warm_ms={}, samples=[])


class ContainerLimits(FactBase[Limits]):
    """What a container may lock, open, share and use, seen from inside as root and as another user.

    + image, injection: as above
    """

    @override
    def command(self, image: str | None = None, injection: str | None = None) -> StringCommand:
        return script(LIMITS_SCRIPT, image, injection, INSIDE)

    @override
    def process(self, output: list[str]) -> Limits:
        found = Limits(problem=None, users={})
        seen: dict[str, list[str]] = {}
        for line in output:
            key, _, value = line.partition(" ")
            if key == "user":
                seen = {}
                found["users"][value] = Inside(
                    memlock=None, nofile=None, shm_bytes=None, cgroup_version=None, devices=[], closed=[]
                )
                last = value
            elif key == "problem":
                found["problem"] = docker_reason(line) or value.strip()
                if found["users"] and not seen:
                    del found["users"][last]
            elif found["users"] and key in ("memlock", "nofile", "shm", "cgroup", "device", "closed"):
                seen.setdefault(key, []).append(value)
                found["users"][last] = inside(seen)
        return found


def inside(seen: dict[str, list[str]]) -> Inside:
    """From the values of each word that INSIDE printed."""
    first = {key: values[0] for key, values in seen.items()}
    shm, cgroup = first.get("shm", ""), first.get("cgroup", "")
    return Inside(
        memlock=first.get("memlock"),
        nofile=first.get("nofile"),
        shm_bytes=int(shm) * 1024 if shm.isdigit() else None,
        cgroup_version=int(cgroup) if cgroup.isdigit() else None,
        devices=seen.get("device", []),
        closed=seen.get("closed", []),
    )


class Survival(FactBase[dict[str, Any] | None]):
    """What the last thorough proof kept on the host: the same kernel before and after each disturbance. None: nothing that can be read."""

    @override
    def command(self) -> StringCommand:
        return StringCommand("cat", kept_result.PATH, "2>/dev/null || true")

    @override
    def process(self, output: list[str]) -> dict[str, Any] | None:
        return kept_result.kept("\n".join(output))


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


def docker_reason(text: str) -> str | None:
    """Docker's own reason, without the OCI runtime's nesting around it."""
    for line in text.splitlines():
        if "Error response from daemon: " in line:
            return line.split("Error response from daemon: ", 1)[1].strip()[:400]
    return None
