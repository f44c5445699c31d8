"""Results of made-up hosts, for tests and benchmarks of the reports: they hold what a whole proof writes down."""

from __future__ import annotations

from bringup.report import Check, HostResult
from bringup.startup import STAGES

METRICS = {
    "matmul-bf16": 790.0,
    "matmul-tf32": 410.0,
    "device-copy": 4250.0,
    "h2d-pinned": 55.0,
    "d2h-pinned": 55.0,
    "peer-copy": 394.0,
}
PASSED = (
    "packages",
    "driver",
    "cdi-spec",
    "docker",
    "image",
    "xid",
    "ecc",
    "row-remapping",
    "pcie-width",
    "fabric",
    "mig",
    "clocks",
)
EVIL = "<script>alert(1)</script>&\"'\x00\x1b[31m"


def unit(name: str) -> str:
    return "TFLOP/s" if name.startswith("matmul") else "GB/s"


def good(at: int = 0) -> HostResult:
    """A proven host with 8 GPUs, all numbers within their floors; hosts differ a little."""
    result = HostResult(
        host=f"gpu-{at:03}", run="2026-12-01T000000Z-abcd", revision="0.1", ended="done", function="proven",
        performance="within floors", hardware="real",
        summary={"gpu": "8 × H200 SXM 141GB", "system": "Debian 13, kernel 6.12, x86_64", "driver": "580.159.04", "docker": "28.5.2"},
    )  # fmt: skip
    result.checks = [Check(each, "pass", "as it shall be") for each in PASSED]
    result.checks += [
        Check(
            f"speed-{name}",
            "pass",
            "fast",
            f"{value:g} {unit(name)}",
            f"at least {value * 0.9:g} {unit(name)}",
            1.1 + at % 7 / 100,
        )
        for name, value in METRICS.items()
    ]
    stages = {name: {"min": 1.0, "median": 90.0 * place + at % 13, "max": 2.0} for place, name in enumerate(STAGES, 1)}
    result.measured = {"cuda_startup": {"problem": None, "samples": [], "stages_ms": stages}}
    return result


def slow(at: int = 1) -> HostResult:
    """Half the bandwidth of what its board should give."""
    result = good(at)
    result.performance = "below"
    result.problems = ["below: speed-h2d-pinned: 27 GB/s, at least 49.5 GB/s is expected"]
    result.notes = ["odd among the hosts with H200: h2d_pinned 27, median 55"]
    result.checks = [each for each in result.checks if each.name != "speed-h2d-pinned"]
    result.checks.append(Check("speed-h2d-pinned", "fail", "27 GB/s <slow>", "27 GB/s", "at least 49.5 GB/s", 0.545))
    return result


def unreachable(at: int = 2) -> HostResult:
    return HostResult(
        f"gpu-{at:03}", "2026-12-01T000000Z-abcd", ended="unreachable", function="not proven", problems=["no route"]
    )


def evil(at: int = 3) -> HostResult:
    """Texts that would break out of a page or of XML."""
    result = slow(at)
    result.host, result.problems, result.notes = f"{EVIL}{at}", [EVIL], [EVIL]
    result.summary = dict.fromkeys(result.summary, EVIL)
    result.checks.append(Check(EVIL, "warn", EVIL, EVIL, EVIL))
    return result


def fleet(count: int) -> list[HostResult]:
    """One in ten is slow, one in ten is not there."""
    return [slow(at) if at % 10 == 1 else unreachable(at) if at % 10 == 2 else good(at) for at in range(count)]
