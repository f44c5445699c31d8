"""From clock stamps to stages: they add up to the whole, and a sample that means nothing says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bringup.startup import STAGES, Sample, docker_ns, sample, summary
from bringup.survey.saved import mismatch

MS = 1_000_000
BEFORE = docker_ns("2026-11-30T21:43:00Z")
STARTED = "2026-11-30T21:43:00.350000001Z"
AT = [("interpreter", 400), ("import_torch", 2400), ("dlopen_libcuda", 2402), ("cu_init", 2507), ("is_available", 2700),
      ("context", 2840), ("first_kernel", 2980), ("other_gpus", 2990), ("end", 2993)]  # fmt: skip


def probe(upto: str = "end", **more: object) -> list[str]:
    """What the probe prints when it reached this stage; the last stamp is always `end`."""
    names = [name for name, _ in AT]
    stamps: list[list[Any]] = [[name, BEFORE + ms * MS] for name, ms in AT[: names.index(upto) + 1]]
    if upto != "end":
        stamps.append(["end", stamps[-1][1] + 3 * MS])
    return [
        "",
        json.dumps({"stamps": stamps, "failed": None, "gpus": ["NVIDIA H200"], "torch": "2.11.0", "clock_drift_ns": 5, **more}),
    ]


def measured(output: list[str], exit_code: int = 0, after_ms: int = 3100) -> Sample:
    return sample(BEFORE, BEFORE + 150 * MS, BEFORE + after_ms * MS, STARTED, exit_code, output)


def test_all_stages_and_what_is_left_over_add_up_to_the_whole() -> None:
    found = measured(probe())
    assert mismatch(found, Sample, "") is None
    assert list(found["stages_ms"]) == list(STAGES)
    assert found["unattributed_ms"] is not None
    assert sum(found["stages_ms"].values()) + found["unattributed_ms"] == pytest.approx(found["total_ms"], abs=0.01)
    assert (found["stages_ms"]["create"], found["stages_ms"]["start"], found["stages_ms"]["exit"]) == (150.0, 200.0, 107.0)
    assert found["stages_ms"]["cu_init"] == 105.0 and found["failed"] is None and found["void"] is None
    assert found["probe"] == {"gpus": ["NVIDIA H200"], "torch": "2.11.0", "clock_drift_ns": 5}


@pytest.mark.parametrize("upto", [name for name, _ in AT[:-1]])
def test_a_probe_that_stopped_has_the_stages_that_it_reached_and_its_reason(upto: str) -> None:
    found = measured(probe(upto, failed={"stage": "next", "error": "RuntimeError: cuInit returned 100"}), exit_code=0)
    reached = ["create", "start", *(name for name, _ in AT[: [name for name, _ in AT].index(upto) + 1]), "exit"]
    assert list(found["stages_ms"]) == reached
    assert found["failed"] == "next: RuntimeError: cuInit returned 100"
    assert sum(found["stages_ms"].values()) + (found["unattributed_ms"] or 0) == pytest.approx(found["total_ms"], abs=0.01)


NOTHING = [
    ([], 125, "exit 125): it printed nothing"),
    (["", "  "], 124, "exit 124): it printed nothing"),
    (["docker: Error response from daemon: could not select device driver", ""], 125, "could not select device driver"),
    (["{not json", "python3: not found"], 127, "python3: not found"),
    (['{"stamps": []}'], 1, "the probe gave no result (exit 1)"),
    (['{"other": 1}'], 0, "the probe gave no result"),
    (["x" * 999], 1, "x" * 300),
]


@pytest.mark.parametrize(("output", "exit_code", "said"), NOTHING)
def test_without_a_result_of_the_probe_the_sample_has_failed_with_the_last_words(
    output: list[str], exit_code: int, said: str
) -> None:
    found = measured(output, exit_code)
    assert found["failed"] is not None and said in found["failed"] and len(found["failed"]) < 400
    assert found["stages_ms"] == {} and found["total_ms"] == 3100.0 and mismatch(found, Sample, "") is None


def test_warnings_around_the_probes_line_do_no_harm() -> None:
    noisy = ["{", "WARNING: NVIDIA Driver was not detected", *probe(), "{oops", "bye"]
    assert measured(noisy) == measured(probe())


def test_a_container_that_never_started_has_failed_though_docker_gives_it_a_time() -> None:
    found = sample(BEFORE, BEFORE + MS, BEFORE + 2 * MS, "0001-01-01T00:00:00Z", 127, ["exec: python3: not found"])
    assert found["failed"] == "the probe gave no result (exit 127): exec: python3: not found"


@pytest.mark.parametrize("drift_ns", [1_000_001, -1_000_001])
def test_a_sample_during_which_the_clock_was_set_is_void(drift_ns: int) -> None:
    assert measured(probe(clock_drift_ns=drift_ns))["void"] == "the clock was set during the measurement"
    assert measured(probe(clock_drift_ns=drift_ns // 2))["void"] is None


def test_a_sample_with_a_negative_stage_is_void() -> None:
    found = sample(BEFORE, BEFORE + 150 * MS, BEFORE + 3100 * MS, "2026-11-30T21:43:00.1Z", 0, probe())
    assert found["void"] == "negative time for start"


def test_a_program_that_began_before_docker_noted_its_start_makes_no_sample_void() -> None:
    found = sample(BEFORE, BEFORE + 150 * MS, BEFORE + 3100 * MS, "2026-11-30T21:43:00.417Z", 0, probe())
    assert found["void"] is None
    assert (found["stages_ms"]["start"], found["stages_ms"]["interpreter"]) == (250.0, 0.0)
    assert sum(found["stages_ms"].values()) + (found["unattributed_ms"] or 0) == pytest.approx(found["total_ms"], abs=0.01)


TIMES = [
    ("2026-11-30T21:43:00Z", 0), ("2026-11-30T21:43:00.5Z", 500_000_000), ("2026-11-30T21:43:00.000000001Z", 1),
    ("2026-11-30T21:43:00.123456789Z", 123_456_789), ("2026-11-30T22:43:00.5+01:00", 500_000_000), ("2026-11-30T16:43:00-05:00", 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ns"), TIMES)
def test_dockers_time_in_nanoseconds(text: str, ns: int) -> None:
    assert docker_ns(text) - docker_ns("2026-11-30T21:43:00Z") == ns


@pytest.mark.parametrize("text", ["", "yesterday", "2026-11-30 22:43:00.5 +0100 CET"])
def test_what_is_no_time_of_docker_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="is no time as Docker writes it"):
        docker_ns(text)


def many(count: int) -> list[Sample]:
    return [
        Sample(stages_ms={"create": float(at)}, unattributed_ms=0.0, total_ms=float(at * 2), failed=None, void=None, probe={})
        for at in range(count, 0, -1)
    ]


def test_a_summary_has_min_median_max_and_percentiles_only_from_enough_samples() -> None:
    assert summary(many(19))["create"] == {"min": 1.0, "median": 10.0, "max": 19.0}
    assert summary(many(20))["create"] == {"min": 1.0, "median": 10.5, "max": 20.0, "p95": 19.0}
    assert "p99" not in summary(many(99))["create"]
    assert summary(many(100))["total"] == {"min": 2.0, "median": 101.0, "max": 200.0, "p95": 190.0, "p99": 198.0}


def test_a_summary_leaves_out_failed_and_void_samples() -> None:
    good, failed, void = many(3)
    failed["failed"], void["void"] = "cu_init: no", "the clock was set"
    assert summary([good, failed, void])["create"] == {"min": 3.0, "median": 3.0, "max": 3.0}
    assert summary([failed, void]) == summary([]) == {}
