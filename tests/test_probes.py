from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bringup import probes

STANDIN = Path(__file__).parents[1] / "e2e/lab/standins/torch"


def run(name: str, path: str = "") -> dict[str, Any]:
    """As it is run in a container: from standard input."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {path!r}); exec(compile(sys.stdin.read(), '<stdin>', 'exec'))",
        ],
        input=probes.source(name),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.mark.parametrize("name", ["gpu_benchmark", "nccl_benchmark"])
def test_an_image_without_torch_is_a_failure_and_not_an_empty_result(name: str) -> None:
    assert "torch" in run(name)["failed"]


def test_no_gpu_is_a_failure_of_the_benchmark() -> None:
    assert run("gpu_benchmark", str(STANDIN))["failed"] == "RuntimeError: torch.cuda.is_available() is False"


def test_nothing_to_reduce_over_is_skipped_with_its_reason() -> None:
    found = run("nccl_benchmark", str(STANDIN))
    assert (found["failed"], found["skipped"]) == (None, "0 GPU: there is nothing to reduce over")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Gpu of the benchmark without a torch behind it."""
    monkeypatch.syspath_prepend(str(Path(probes.__file__).parent))
    module = importlib.import_module("gpu_metrics")
    made = module.Gpu.__new__(module.Gpu)
    made.report = {"alone": {}, "not_measured": {}, "checks": {}}
    return made


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_a_number_that_is_none_is_not_taken(gpu: Any, value: float) -> None:
    gpu.measure("alone", "matmul_bf16", lambda: value)
    assert gpu.report["alone"] == {}
    assert "is no result" in gpu.report["not_measured"]["matmul_bf16"]


def test_a_metric_that_fails_says_why_and_ends_no_other(gpu: Any) -> None:
    gpu.measure("alone", "device_copy", lambda: 1 / 0)
    gpu.measure("alone", "h2d_pinned", lambda: 55.0)
    assert gpu.report["alone"] == {"h2d_pinned": 55.0}
    assert gpu.report["not_measured"]["device_copy"] == "ZeroDivisionError: division by zero"


def test_what_was_wrong_once_stays_wrong(gpu: Any) -> None:
    gpu.judge("h2d_pinned", "what arrived is not what was sent")
    gpu.judge("h2d_pinned", None)
    assert gpu.report["checks"]["h2d_pinned"] == "what arrived is not what was sent"


def test_a_probe_of_several_files_travels_as_one_piece(tmp_path: Path) -> None:
    """The parts are found without a folder that holds them, and a traceback names the part."""
    text = probes.source("gpu_benchmark") + "\nprint(Gpu.__module__, Nvml.__module__)\n"
    (tmp_path / "torch.py").write_text("raise ImportError('none here')")
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "gpu_metrics gpu_nvml"
    assert json.loads(done.stdout.splitlines()[-2])["failed"] == "ImportError: none here"


@pytest.mark.parametrize(
    ("asked", "used"),
    [("", "lo"), ("eth0", "lo"), ("eth", "lo"), ("enp", "enp"), ("enp90s0np0", "enp90s0np0"), ("=enp90s0np0", "=enp90s0np0"),
     ("=enp", "lo"), ("^lo,docker0", "^lo,docker0"), ("^lo,enp90s0np0", "lo"), ("eth0,lo", "eth0,lo")],
)  # fmt: skip
def test_nccl_begins_on_an_interface_that_this_host_has(
    asked: str, used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("lo", "enp90s0np0"):
        (tmp_path / each).mkdir()
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", asked)
    monkeypatch.syspath_prepend(str(Path(probes.__file__).parent))
    found = importlib.import_module("nccl_benchmark").interface(str(tmp_path))
    assert (found["used"], found["there"]) == (used, ["enp90s0np0", "lo"])
