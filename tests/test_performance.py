"""Speed held against the board's floors; wrong results are no matter of speed. The numbers are what H200 gave on 2026-11-30."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bringup import catalog, verdicts
from bringup.performance import benchmark_checks, fleet_notes, outliers, performance
from bringup.report import Check
from bringup.smi import SmiReport, parse_smi
from facts.verification import GpuBenchmark
from tests.smi_gpus import gpu
from tests.test_facts import sh

CATALOG = catalog.load()
ALONE = {
    "matmul_bf16": 790.0, "matmul_tf32": 410.0, "matmul_fp32": 51.0, "device_copy": 4250.0, "h2d_pinned": 55.0, "h2d_pageable": 2.9,
    "d2h_pinned": 55.0, "d2h_pageable": 2.8, "launch_eager": 10.0, "launch_graph": 0.98,
}  # fmt: skip
Edit = Callable[[dict[str, Any]], object]


def h200(count: int = 1, subsystem: str = "10de:18be") -> SmiReport:
    values = {"pci_id": "10de:2335", "pci_subsystem": subsystem, "link_generation_max": 5}
    return SmiReport(
        driver_version="580.159.04",
        cuda_version="13.0",
        gpus=[gpu(pci_address=f"0000:0{n}:00.0", **values) for n in range(count)],
    )


def measured(count: int = 1) -> dict[str, Any]:
    """What GpuBenchmark gives for a host on which all is well."""
    gpus = [
        {
            "index": n, "name": "NVIDIA H200", "pci_address": f"0000:0{n}:00.0", "skipped": None,
            "alone": dict(ALONE), "not_measured": {},
            "parallel": {"matmul_bf16": 780.0, "h2d_pinned": 54.0} if count > 1 else {},
            "checks": {"matmul_bf16": None, "h2d_pinned": None},
            "under_load": {"h2d_pinned": {"pcie_generation": 5, "pcie_width": 16}},
        }
        for n in range(count)
    ]  # fmt: skip
    peers = [{"from": 0, "to": 1, "access": True, "gb_per_s": 394.0, "wrong": None}] if count > 1 else []
    return {"problem": None, "skipped": None, "link": "NV18", "result": {"failed": None, "gpus": gpus, "peers": peers}}


def reduced(**values: Any) -> dict[str, Any]:
    bus = {"all_reduce_64mib": 264.0, "all_reduce_1gib": 328.0, "all_reduce_4gib": 341.0}
    result = {"failed": None, "skipped": None, "wrong": None, "gpus": 2, "nccl": "2.28.9", "bus_gb_per_s": bus, **values}
    return {"problem": None, "skipped": None, "link": "NV18", "result": result}


def judged(seen: SmiReport, gpus: dict[str, Any], nccl: dict[str, Any] | None = None) -> tuple[str, str, dict[str, Check]]:
    functional, speed = benchmark_checks(gpus, nccl, seen, CATALOG)
    found = {each.name: each for each in (*functional, *speed)}
    return verdicts.function(functional), performance(speed), found


def test_an_h200_as_it_was_measured_is_within_floors() -> None:
    function, speed, found = judged(h200(), measured())
    assert (function, speed) == ("proven", "within floors")
    assert found["speed-matmul-bf16"].status == "pass" and "at least 679.5" in found["speed-matmul-bf16"].detail
    assert found["speed-h2d-pageable"].status == "not-judged" and "no floor" in found["speed-h2d-pageable"].detail


def test_two_h200_with_nvlink_and_nccl_are_within_floors() -> None:
    function, speed, found = judged(h200(2, "10de:18bf"), measured(2), reduced())
    assert (function, speed) == ("proven", "within floors")
    assert {found[f"speed-{each}"].status for each in ("peer-copy", "all-reduce-64mib", "all-reduce-4gib")} == {"pass"}
    assert found["nccl"].status == "pass"


def first(gpus: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = gpus["result"]["gpus"][0]
    return found


SLOW: list[tuple[str, Edit, str]] = [
    ("half the matmul", lambda it: first(it)["alone"].update(matmul_bf16=395.0), "speed-matmul-bf16"),
    ("half the bandwidth", lambda it: first(it)["alone"].update(device_copy=2125.0), "speed-device-copy"),
    ("a slow link down", lambda it: first(it)["alone"].update(h2d_pinned=12.5), "speed-h2d-pinned"),
    ("a slow link up", lambda it: first(it)["alone"].update(d2h_pinned=12.5), "speed-d2h-pinned"),
    ("slow launches", lambda it: first(it)["alone"].update(launch_eager=60.0), "speed-launch-eager"),
    ("not a number", lambda it: first(it)["alone"].update(matmul_tf32=math.nan), "speed-matmul-tf32"),
    ("infinitely fast", lambda it: first(it)["alone"].update(launch_graph=math.inf), "speed-launch-graph"),
    (
        "an old generation under load",
        lambda it: first(it)["under_load"]["h2d_pinned"].update(pcie_generation=1),
        "pcie-under-load",
    ),
    ("lanes lost under load", lambda it: first(it)["under_load"]["h2d_pinned"].update(pcie_width=8), "pcie-under-load"),
]


@pytest.mark.parametrize(("edit", "name"), [each[1:] for each in SLOW], ids=[each[0] for each in SLOW])
def test_what_is_slow_is_below_and_named(edit: Edit, name: str) -> None:
    gpus = measured()
    edit(gpus)
    _, speed, found = judged(h200(), gpus)
    assert speed == "below"
    assert [each.name for each in found.values() if each.status == "fail"] == [name]


WRONG: list[tuple[str, Edit, str]] = [
    ("a wrong product", lambda it: first(it)["checks"].update(matmul_fp32="the product is not the CPU's"), "not the CPU's"),
    ("NaN in the product", lambda it: first(it)["checks"].update(matmul_bf16="the product has values that are no numbers"), "no numbers"),
    ("a copy that differs", lambda it: first(it)["checks"].update(h2d_pinned="what arrived is not what was sent"), "not what was sent"),
    ("a time that is none", lambda it: first(it)["not_measured"].update(device_copy="nan is no result"), "device_copy: nan"),
    ("out of memory", lambda it: first(it)["not_measured"].update(matmul_bf16="OutOfMemoryError: CUDA"), "OutOfMemoryError"),
    ("nothing checked", lambda it: first(it).update(checks={}), "no result was checked"),
    ("a probe that broke", lambda it: it["result"].update(failed="RuntimeError: CUDA error: unspecified launch failure"), "launch failure"),
    ("a peer that got rubbish", lambda it: it["result"].update(peers=[
        {"from": 0, "to": 1, "access": True, "gb_per_s": 394.0, "wrong": "what arrived is not what was sent"}]), "GPU 0 to 1"),
    ("no result at all", lambda it: it.update(result=None, problem="the benchmark gave no result but: Killed (exit 137)"), "exit 137"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "said"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_wrong_result_is_not_proven_however_fast(edit: Edit, said: str) -> None:
    gpus = measured()
    edit(gpus)
    function, _, found = judged(h200(), gpus)
    assert function == "not proven"
    assert said in found["results"].detail


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"failed": "no end after 90 s", "without_peer_to_peer": {"failed": None}},
            "without peer-to-peer it works: ACS or an IOMMU",
        ),
        ({"failed": "no end after 90 s", "without_peer_to_peer": {"failed": "no end after 90 s"}}, "no end after 90 s"),
        ({"failed": "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory : CUDA error 401"}, "CUDA error 401"),
        ({"wrong": "all_reduce_1gib gave a wrong sum on GPU 1"}, "wrong sum on GPU 1"),
    ],
)
def test_nccl_that_hangs_or_sums_wrong_is_not_proven(values: dict[str, Any], said: str) -> None:
    function, _, found = judged(h200(2, "10de:18bf"), measured(2), reduced(**values))
    assert function == "not proven" and said in found["nccl"].detail


def test_nccl_is_blamed_on_peer_to_peer_only_where_it_works_without() -> None:
    _, _, found = judged(h200(2), measured(2), reduced(failed="no end", without_peer_to_peer={"failed": "no end"}))
    assert "ACS" not in found["nccl"].detail


def test_half_the_all_reduce_is_below() -> None:
    bus = {"all_reduce_4gib": 170.0}
    _, speed, found = judged(h200(2, "10de:18bf"), measured(2), reduced(bus_gb_per_s=bus))
    assert speed == "below" and found["speed-all-reduce-4gib"].status == "fail"


@pytest.mark.parametrize(
    "values", [{"pci_id": "10de:ffff"}, {"pci_subsystem": "10de:0001"}, {"pci_id": None}, {"pci_subsystem": None}]
)
def test_another_board_is_not_judged_by_a_floor_of_this_one(values: dict[str, Any]) -> None:
    seen = h200()
    seen["gpus"][0].update(values)  # type: ignore[typeddict-item]
    _, speed, found = judged(seen, measured())
    assert speed == "not judged"
    assert {each.status for name, each in found.items() if name.startswith("speed")} == {"not-judged"}


def test_another_link_is_not_judged_by_nvlinks_floor() -> None:
    gpus = {**measured(2), "link": "PHB"}
    _, _, found = judged(h200(2, "10de:18bf"), gpus, reduced())
    assert {found[each].status for each in ("speed-peer-copy", "speed-all-reduce-1gib")} == {"not-judged"}


def test_the_worst_gpu_of_a_host_counts() -> None:
    gpus = measured(2)
    gpus["result"]["gpus"][1]["alone"]["matmul_bf16"] = 400.0
    assert judged(h200(2), gpus, reduced())[1] == "below"


def test_a_gpu_that_is_slow_only_with_all_at_work_is_a_warning() -> None:
    gpus = measured(2)
    gpus["result"]["gpus"][1]["parallel"]["matmul_bf16"] = 500.0
    _, speed, found = judged(h200(2), gpus, reduced())
    assert speed == "within floors" and "GPU 1: matmul_bf16 500 TFLOP/s with all at work" in found["speed-together"].detail


def test_a_metric_that_the_gpu_does_not_have_is_no_failure() -> None:
    gpus = measured()
    del first(gpus)["alone"]["matmul_bf16"]
    first(gpus)["not_measured"]["matmul_bf16"] = "this GPU has no bf16 (compute capability 7.5)"
    assert judged(h200(), gpus)[0] == "proven"


def test_gpus_in_use_are_skipped_and_their_speed_is_not_measured() -> None:
    used = {"problem": None, "skipped": "GPUs in use are not benchmarked: 4242, python3", "link": None, "result": None}
    functional, speed = benchmark_checks(used, None, h200(), CATALOG)
    assert functional == [] and performance(speed) == "not measured" and "4242" in speed[0].detail


def test_nothing_measured_is_not_measured() -> None:
    assert performance([]) == "not measured"


def test_the_odd_host_of_a_fleet_is_named() -> None:
    found = outliers({"a": 790.0, "b": 788.0, "c": 795.0, "d": 610.0})
    assert list(found) == ["d"] and found["d"].startswith("610, the median of 4 hosts is 789")
    assert list(outliers({"a": 790.0, "b": 790.0, "c": math.nan})) == ["c"]


@pytest.mark.parametrize("values", [{}, {"a": 1.0}, {"a": 1.0, "b": 9.0}, {"a": 790.0, "b": 790.0, "c": 780.0}])
def test_no_host_is_odd_among_two_or_within_some_percent(values: dict[str, float]) -> None:
    assert outliers(values) == {}


def test_the_script_leaves_gpus_in_use_alone(tmp_path: Path) -> None:
    done = sh(GpuBenchmark().command("image", "cdi"), tmp_path, docker="echo started", **{"nvidia-smi": "echo 4242, python3"})
    found = GpuBenchmark().process(done.stdout.splitlines())
    assert found["skipped"] == "GPUs in use are not benchmarked: 4242, python3" and "started" not in done.stdout


def test_the_script_gives_the_probes_json_and_the_link(tmp_path: Path) -> None:
    topology = r"printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-15\nGPU1\tNV18\t X \t0-15\n'"
    smi = f'case $1 in topo) {topology} ;; *) echo "[N/A]" ;; esac'
    docker = 'cat >probe; echo noise; echo \'{"failed": null, "gpus": []}\''
    done = sh(
        GpuBenchmark().command("image", "runtime"), tmp_path, docker=f"[ $1 = run ] || exit 0\n{docker}", **{"nvidia-smi": smi}
    )
    found = GpuBenchmark().process(done.stdout.splitlines())
    assert found == {"problem": None, "skipped": None, "link": "NV18", "result": {"failed": None, "gpus": []}}
    assert "CUDAGraph" in (tmp_path / "probe").read_text()


def test_one_gpu_has_no_link() -> None:
    output = ["topology GPU0\t X \t0-15\t0\t\tN/A", "exit 0", '{"failed": null, "gpus": []}']
    assert GpuBenchmark().process(output)["link"] is None


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (["exit 137"], "exit 137"),
        (["exit 0", "{broken"], "{broken"),
        (["exit 0", json.dumps([1])], "[1]"),
        (["exit 125", "docker: Error response from daemon: no such image."], "no such image. (exit 125)"),
        ([], "no exit status"),
        (["problem no image is named"], "no image is named"),
    ],
)
def test_garbage_and_a_killed_probe_are_a_problem(output: list[str], said: str) -> None:
    found = GpuBenchmark().process(output)
    assert found["result"] is None and said in str(found["problem"])


def test_the_capture_of_the_h200_finds_its_floors_by_its_board() -> None:
    seen = parse_smi((Path(__file__).parent / "samples" / "nvidia-smi-q-h200.xml").read_text())
    gpus = measured()
    first(gpus)["pci_address"] = seen["gpus"][0]["pci_address"]
    assert judged(seen, gpus)[2]["pcie-under-load"].status == "pass"


def test_the_odd_host_gets_a_note_among_hosts_of_its_model_alone() -> None:
    fleet = {name: measured()["result"] for name in "abcd"}
    fleet["d"]["gpus"][0]["alone"]["launch_eager"] = 60.0
    fleet["c"]["gpus"][0]["name"] = "NVIDIA L4"
    found = fleet_notes(fleet)
    assert list(found) == ["d"]
    assert found["d"] == ["odd among the hosts with NVIDIA H200: launch_eager 60, the median of 3 hosts is 10 (MAD 0)"]
    assert fleet_notes({"a": {"failed": "RuntimeError", "gpus": []}}) == {}


def test_an_interface_that_the_image_names_and_the_host_has_not_is_a_warning() -> None:
    interface = {"asked": "eth0", "used": "lo", "there": ["enp90s0np0", "lo"]}
    _, _, found = judged(h200(2, "10de:18bf"), measured(2), reduced(interface=interface))
    assert found["nccl-interface"].status == "warn" and "NCCL_SOCKET_IFNAME=eth0" in found["nccl-interface"].detail
    _, _, found = judged(h200(2, "10de:18bf"), measured(2), reduced(interface={**interface, "asked": None}))
    assert "nccl-interface" not in found
