from __future__ import annotations

from typing import Any

import pytest

from bringup.startup import STAGES, Sample
from bringup.startup_advice import CURES, advice, compared
from tests.smi_gpus import gpu

# one H200, 2026-11-30
STAGES_MS = {"create": 60.0, "start": 265.0, "interpreter": 20.0, "import_torch": 1700.0, "dlopen_libcuda": 1.8, "cu_init": 105.0,
             "is_available": 190.0, "context": 136.0, "first_kernel": 270.0, "other_gpus": 0.1, "exit": 480.0}  # fmt: skip


def start(unattributed: float | None = 5.0, **stages: float) -> Sample:
    ms = {**STAGES_MS, **stages}
    total = sum(ms.values()) + (unattributed or 0)
    return Sample(stages_ms=ms, unattributed_ms=unattributed, total_ms=total, failed=None, void=None, probe={})


def test_every_stage_has_a_cure() -> None:
    assert set(CURES) == set(STAGES)


@pytest.mark.parametrize("stage", STAGES)
def test_the_longest_stage_is_named_with_its_cure(stage: str) -> None:
    found = advice(start(**{stage: 4000.0}), [gpu(persistence="Enabled")])
    assert (
        found and found.status == "pass" and found.detail.startswith(f"{stage} takes 4000 of ") and CURES[stage] in found.detail
    )


@pytest.mark.parametrize(
    ("sample", "persistence", "said"),
    [
        (start(cu_init=21_400.0), "Disabled", "persistence is off"),
        (start(cu_init=21_400.0), "Enabled", "persistence is on, so"),
        (start(first_kernel=143_000.0), "Enabled", "no machine code for this GPU"),
        (start(unattributed=900.0), "Enabled", "belong to no stage"),
        (start(unattributed=None), "Enabled", "belong to no stage"),
    ],
)
def test_what_is_too_long_is_a_warning_with_its_cause(sample: Sample, persistence: str, said: str) -> None:
    found = advice(sample, [gpu(persistence=persistence)])
    assert found and found.status == "warn" and said in found.detail


@pytest.mark.parametrize(
    "values",
    [
        {"failed": "cu_init: RuntimeError: cuInit returned 802"},
        {"stages_ms": {}},
    ],
)
def test_a_sample_that_means_nothing_gives_no_advice(values: dict[str, Any]) -> None:
    assert advice(Sample(**{**start(), **values}), []) is None  # type: ignore[typeddict-item]


def test_times_by_a_clock_that_was_set_are_no_times_and_no_pass() -> None:
    found = advice(Sample(**{**start(), "void": "the clock was set during the measurement"}), [])
    assert found and (found.status, found.detail) == (
        "skipped",
        "its times mean nothing: the clock was set during the measurement",
    )


def test_ways_of_injection_are_held_against_each_other() -> None:
    """One H200, 2026-11-30: CDI 325 ms, the nvidia runtime 500 ms for the same program."""
    assert compared({"cdi": 325.0, "runtime": 500.0, "bare": 90.0}) == [
        "the nvidia runtime starts 175 ms slower than CDI: gpu_injection cdi is the quicker way",
        "a container costs 235 ms beside the same program without one",
    ]
    assert compared({"cdi": 500.0, "runtime": 325.0, "bare": None}) == [
        "CDI starts 175 ms slower than the nvidia runtime",
        "bare was not measured",
    ]
    assert compared({}) == ["cdi was not measured", "runtime was not measured", "bare was not measured"]
