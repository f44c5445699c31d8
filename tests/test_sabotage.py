"""What may be wrong on a host that looks well: each ends not proven, or below its floors, and the cause is named.

A whole `verify` on hosts that answer as a sound one would, but for the one thing. The lab has more of these, on hosts that are really
broken (e2e/scenarios/sabotage), and the doctor's cases are in tests/causes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bringup.report import HostResult
from bringup.report.textfile import metrics
from bringup.smi import parse_smi
from tests.fakes import INSIDE, START, data, started, ways
from tests.surveys import Host, converged, proven
from tests.test_performance import measured
from tests.test_run import own_run as own_run
from tests.test_run import result, run, sent

XML = Path(__file__).parent / "samples" / "nvidia-smi"
# the board that the floors of one H200 were measured on
BOARD = (XML.parent / "nvidia-smi-q-h200.xml").read_text().replace("18BF10DE", "18BE10DE")
HOST = converged("debian13")
STANDARD = {"gpu_verify": "standard"}
ADDRESS = parse_smi(BOARD)["gpus"][0]["pci_address"]
Edit = Callable[[dict[str, Any]], object]


NO_SPEC = "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"
NEWER = "nvidia-smi: symbol lookup error: undefined symbol: nvmlDeviceGetGpuFabricInfoV"


def smi(name: str, log: str = "") -> dict[str, Any]:
    """nvidia-smi's XML of another board or state, and a line of the kernel log."""
    text = BOARD if not name else (XML / f"{name}.xml").read_text()
    return {"smi": "\n".join([*([f"xid {log}"] if log else []), "exit 0", text])}


def xid(code: int, said: str) -> dict[str, Any]:
    return smi("", f"[  812.1] NVRM: Xid (PCI:0000:61:00): {code}, pid=4242, name=python3, {said}")


def dead(stage: str, error: str) -> dict[str, Any]:
    return {"startup": started({"stage": stage, "error": error})}


def printed(*lines: str, code: int = 0) -> dict[str, Any]:
    """A probe that gave no result of its own."""
    at = f"run cdi {START} {START + 1_000_000} {START + 500_000_000} {code} 2026-11-30T21:43:00.3Z"
    return {"startup": [at, *(f"|{each}" for each in lines)]}


def bench(edit: Edit) -> dict[str, Any]:
    """GpuBenchmark of this H200, with one thing wrong."""
    found = measured()["result"]
    found["gpus"][0]["pci_address"] = ADDRESS
    edit(found["gpus"][0])
    return {**STANDARD, **smi(""), "benchmark": ["topology GPU0 X", "exit 0", json.dumps(found)]}


def limits(old: str, new: str, user: int | None = None) -> dict[str, Any]:
    """`user`: for this one alone (0: root, 1: the other)."""
    half = len(INSIDE) // 2
    said = [new if line == old and user in (None, at >= half) else line for at, line in enumerate(INSIDE)]
    assert said != INSIDE
    return {"limits": said}


def lost(after: str) -> str:
    """A kept result in which the container did not keep its GPU."""
    kept = json.loads(proven(HOST))
    step = {"failed": {"stage": "cu_init", "error": "RuntimeError: cuInit returned 100"}, "gpus": []}
    kept["steps"] = [{**each, "probe": step} if each["after"] == after else each for each in kept["steps"]]
    return json.dumps({**kept, "proven": None})


def spec(old: str, new: str) -> Host:
    return HOST.set("cdi", "\n".join(HOST.sections["cdi"][1]).replace(old, new))


SABOTAGE: dict[str, tuple[Host, dict[str, Any], tuple[str, ...]]] = {
    # devices and libraries
    "device nodes missing in the container": (
        HOST,
        {"limits": [each for each in INSIDE if "device" not in each], **dead("cu_init", "RuntimeError: cuInit returned 100")},
        ("cuInit returned 100", "no NVIDIA device file"),
    ),
    "device files for root alone": (
        HOST,
        limits("device /dev/nvidia0", "closed /dev/nvidia0", user=1),
        ("devices-in-container", "/dev/nvidia0 (user 65534)"),
    ),
    "nvidia-uvm missing in the spec": (spec("node /dev/nvidia-uvm\n", "node /dev/x\n"), {}, ("cdi-spec", "/dev/nvidia-uvm")),
    "nvidia-uvm not loaded": (HOST.set("modules", "nvidia"), {}, ("nvidia_uvm is not loaded",)),
    "spec of another driver's library": (
        spec("libcuda.so.580.159.04", "libcuda.so.570.86.15"),
        {},
        ("cdi-spec", "of driver 570.86.15"),
    ),
    "no spec": (HOST.set("cdi", ""), {}, ("cdi-spec", "no CDI spec")),
    "spec that Docker cannot resolve": (HOST, {"smi": f"exit 125\n{NO_SPEC}"}, ("unresolvable CDI devices",)),
    "library of another version than the module": (HOST, {"smi": f"exit 18\n{MISMATCH}"}, ("Driver/library version mismatch",)),
    "driver not loaded": (
        HOST.set("driver_loaded", "", "absent").set("driver_loaded_version", "", "absent"),
        {},
        ("no driver is loaded",),
    ),
    "another driver on disk than in the kernel": (
        HOST.set("module_version", "580.178.04").set("gpu_processes", "1, python"),
        {},
        ("reboot-pending", "580.178.04 is installed"),
    ),
    "nouveau holds the GPU": (HOST.set("modules", "nouveau\nnvidia\nnvidia_uvm"), {}, ("nouveau holds the GPU",)),
    # the kernel
    "is_available is True and the first kernel fails": (
        HOST,
        dead("first_kernel", "RuntimeError: CUDA error: no kernel image is available"),
        ("first_kernel", "no kernel image"),
    ),
    "is_available is False": (
        HOST,
        dead("is_available", "RuntimeError: torch.cuda.is_available() is False"),
        ("is_available() is False",),
    ),
    "fabric not ready: error 802": (HOST, dead("cu_init", "RuntimeError: cuInit returned 802"), ("cuInit returned 802",)),
    "the kernel's result is NaN": (
        HOST,
        dead("first_kernel", "RuntimeError: the kernel on GPU 0 gave nan instead of 1047552"),
        ("gave nan instead of",),
    ),
    "a GPU less in CUDA than in nvidia-smi": (HOST, {"startup": started(gpus=[])}, ("cuda-kernel", "1 are expected")),
    "probe killed": (HOST, printed(code=137), ("exit 137", "printed nothing")),
    "probe printing garbage": (HOST, printed('{"stamps": "x', "\x00\x01garbage"), ("gave no result", "garbage")),
    "no Python in the image": (
        HOST,
        printed("exec: python3: executable file not found in $PATH", code=127),
        ("exit 127", "python3"),
    ),
    "image of another architecture": (
        HOST,
        printed("exec /usr/bin/python3: exec format error", code=255),
        ("exec format error",),
    ),
    "the clock jumps": (
        HOST,
        {"startup": started(clock_drift_ns=7_000_000_000)},
        ("startup", "the clock was set during the measurement"),
    ),
    # counts and models
    "half the GPUs in the container": (
        converged("debian13", ["0x2335 0x10de 0x18be 0x030200"] * 2),
        {},
        ("1 seen in the container, 2 expected",),
    ),
    "half the expected GPUs on the bus": (HOST, {"gpu_expected_count": 2}, ("2", "GPU")),
    "unknown GPU model": (
        converged("debian13").set("pci", "0000:06:00.0 0x10de 0x9999 0x10de 0x0001 0x030200 0 nvidia 6 0"),
        {},
        ("10de:9999", "not in the catalog"),
    ),
    "nvidia-smi hanging": (HOST, {"smi": "exit 124\n"}, ("gpus-in-container", "exit 124")),
    "nvidia-smi of another driver": (HOST, {"smi": f"exit 127\n{NEWER}"}, ("undefined symbol", "exit 127")),
    "a GPU that fell off the bus": (HOST, smi("gpu-lost-driver-570"), ("gpus-answer", "lost from the bus")),
    # health
    "Xid 79": (HOST, xid(79, "GPU has fallen off the bus."), ("Xid 79", "fallen off the bus", "power-cycle")),
    "Xid 119": (HOST, xid(119, "Timeout waiting for RPC from GSP!"), ("Xid 119", "GSP")),
    "a row waits for its spare one": (HOST, smi("h200-driver-580-row-pending"), ("row-remapping", "waits for its spare one")),
    "a row could not be replaced": (HOST, smi("h200-driver-580-row-failed"), ("row-remapping", "replace the card")),
    "uncorrectable memory errors": (HOST, smi("b200-driver-590-uncorrectable"), ("ecc", "uncorrectable")),
    "the driver asks for a reset": (HOST, smi("b200-driver-620-asks-for-reset"), ("recovery", "asks for")),
    "half the lanes": (HOST, smi("l4-driver-570-half-the-lanes"), ("pcie-width", "reseat")),
    "fabric in progress": (HOST, smi("h100-driver-550-fabric-in-progress"), ("fabric", "in progress", "802")),
    "MIG on without an instance": (HOST, smi("a100-driver-535-mig-on-without-instance"), ("mig", "without any instance")),
    "MIG pending": (HOST, smi("a100-driver-550-mig-pending"), ("mig", "pending")),
    # limits and survival
    "memlock of 8 MiB inside": (
        HOST,
        limits("memlock unlimited", "memlock 8388608"),
        ("memlock-in-container", "8388608", "unlimited is wanted"),
    ),
    "memlock of 8 MiB for all but root": (
        HOST,
        limits("memlock unlimited", "memlock 8388608", user=1),
        ("8388608 (user 65534)",),
    ),
    "shm of 64 MiB": (HOST, limits(f"shm {8 << 20}", f"shm {64 << 10}"), ("shm-in-container", "8g is wanted")),
    "GPU lost after daemon-reload": (
        HOST.set("proof", lost("daemon-reload")),
        STANDARD,
        ("survival-daemon-reload", "ran before, and not after", "cgroup"),
    ),
    "GPU dead before anything was disturbed": (
        HOST.set("proof", lost("start")),
        STANDARD,
        ("before anything was disturbed", "cuInit returned 100"),
    ),
    # speed and results
    "half the bandwidth": (
        HOST,
        bench(lambda gpu: gpu["alone"].update(device_copy=2100.0)),
        ("speed-device-copy", "2100 GB/s", "is expected"),
    ),
    "half the speed of matmul": (HOST, bench(lambda gpu: gpu["alone"].update(matmul_bf16=395.0)), ("speed-matmul-bf16", "395")),
    "slow link under load": (
        HOST,
        bench(lambda gpu: gpu["under_load"]["h2d_pinned"].update(pcie_generation=3)),
        ("pcie-under-load", "generation 3 of 5"),
    ),
    "a product that is wrong": (
        HOST,
        bench(lambda gpu: gpu["checks"].update(matmul_bf16="12 of 16777216 values are wrong")),
        ("results", "12 of 16777216"),
    ),
    "a result that is NaN": (
        HOST,
        bench(lambda gpu: (gpu["alone"].pop("matmul_bf16"), gpu["not_measured"].update(matmul_bf16="nan is no result"))),
        ("results", "nan is no result"),
    ),
    "benchmark without an end": (HOST, {**STANDARD, "benchmark": ["exit 124"]}, ("results", "exit 124")),
    # Docker
    "Docker does not answer": (HOST.set("docker_info", "", "timeout"), {}, ("docker", "no answer within the time limit")),
    "Docker without what is wanted": (
        HOST.set("docker_info", '{"Runtimes": {}, "CDISpecDirs": []}'),
        {},
        ("docker", "runtime nvidia"),
    ),
    "image gone": (HOST.set("docker_images", ""), {}, ("image", "not on the host")),
    "Docker's way of asking for GPUs gives none": (
        HOST,
        {**bench(lambda gpu: None), "ways": ways("runtime", "gpus")},
        ("docker-ways", "nvidia.com/gpu=all`: none (docker: no)"),
    ),
    "persistence daemon down": (
        HOST.set("units", "\n".join(HOST.sections["units"][1]).replace("active", "inactive")),
        {},
        ("nvidia-persistenced",),
    ),
}


def test_the_host_itself_is_proven_and_within_its_floors() -> None:
    run({"sound": data(HOST, **bench(lambda gpu: None))}, stages=("verify",))
    found = result("sound")
    assert (found.function, found.performance, found.problems, found.changed) == ("proven", "within floors", [], [])


@pytest.mark.parametrize("name", SABOTAGE)
def test_sabotage_is_not_proven_and_its_cause_is_named(name: str) -> None:
    host, more, words = SABOTAGE[name]
    state = run({"bad": data(host, **more)}, stages=("verify",))
    found = result("bad")
    assert not found.ok and (found.function != "proven" or found.performance == "below")
    assert [each.name for each in state.failed_hosts] == ["@fake/bad"]
    said = " | ".join(found.problems)
    assert all(each in said for each in words), said
    assert all(each.remedy for each in found.checks if each.status in ("fail", "skipped")), "what to do is not said"


def test_metrics_are_written_of_a_host_that_is_not_proven_too_and_only_where_they_differ() -> None:
    folder = {"gpu_textfile": "/var/lib/node_exporter"}
    state = run({"bad": data(HOST.set("cdi", ""), **folder), "off": data(HOST.set("cdi", ""))}, stages=("verify",))
    written = [each for each in sent(state, "bad") if "gpu_bringup.prom.gpu-bringup-new" in each]
    assert len(written) == 1 and "cdi-spec" in result("bad").problems[0]
    assert not any("gpu_bringup.prom" in each for each in sent(state, "off"))
    good = data(HOST, **folder)
    good["fake_responses"]["gpu_bringup.prom"] = [*metrics(result_of_a_sound_host()).splitlines(), "."]
    state = run({"good": good}, stages=("verify",))
    assert result("good").changed == [] and result("good").function == "proven"


def result_of_a_sound_host() -> HostResult:
    run({"sound": data(HOST)}, stages=("verify",))
    return result("sound")
