"""The quick proof: proven only when everything was looked at and is right; each thing that is not is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bringup import verdicts
from bringup.report import Check
from bringup.smi import SmiReport
from bringup.startup import Sample
from bringup.survey import Survey
from bringup.target import Target
from facts.verification import ContainerLimits
from tests import fakes
from tests.smi_gpus import gpu
from tests.surveys import BASES, DRIVER, Host, target_of

BASE = "converged debian13 8 x h200"
HOST = BASES[BASE]()
TARGET = target_of(HOST).target
SEEN = SmiReport(driver_version=DRIVER, cuda_version="13.0", gpus=[gpu()] * 8)
RAN = Sample(
    stages_ms={}, unattributed_ms=0.0, total_ms=1.0, failed=None, void=None,
    probe={"gpus": ["NVIDIA H200"] * 8, "torch": "2.11.0"},
)  # fmt: skip


INSIDE = ContainerLimits().process(fakes.INSIDE)


def checks(
    host: Host = HOST,
    target: Target = TARGET,
    seen: SmiReport | None = SEEN,
    sample: Sample | None = RAN,
    edit: Callable[[Survey], object] = lambda survey: None,
) -> list[Check]:
    survey = host.survey
    edit(survey)
    return verdicts.functional_checks(
        survey, target, seen, "docker: no such image" if seen is None else None, sample, "no start", INSIDE
    )


def test_a_host_on_which_everything_was_seen_is_proven() -> None:
    found = checks()
    assert [(each.name, each.status) for each in found if each.status != "pass"] == []
    assert verdicts.function(found) == "proven" and verdicts.problems(found) == []
    assert {each.name for each in found} >= {"driver", "cdi-spec", "docker", "image", "gpus-in-container", "cuda-kernel"}


def ran(**probe: object) -> Sample:
    return Sample(**{**RAN, "probe": {**RAN["probe"], **probe}})


def gpus(count: int) -> SmiReport:
    return SmiReport(driver_version=DRIVER, cuda_version=None, gpus=SEEN["gpus"][:1] * count)


HIDDEN = {"unreadable": "no answer within the time limit"}
SECTIONS = [  # what is wrong on the host: sections of its survey, the check, what it says
    ({"driver_loaded": ("", "absent"), "driver_loaded_version": ("", "absent")}, "driver", "no driver is loaded"),
    ({"driver_loaded_version": ("", "timeout")}, "driver", ""),
    ({"driver_loaded_version": ("570.86.15", "ok"), "module_version": ("570.86.15", "ok")}, "driver", "570.86.15 is loaded, 580 is wanted"),
    ({"module_version": ("580.178.04", "ok")}, "driver", "driver 580.159.04 is loaded, 580.178.04 is installed, and nothing uses the GPU"),
    ({"modules": ("nouveau\nnvidia\nnvidia_uvm", "ok")}, "driver", "reboot-pending: nouveau holds the GPU"),
    ({"cdi": ("", "ok")}, "cdi-spec", "no CDI spec for nvidia.com/gpu"),
    ({"docker_info": ("", "absent")}, "docker", "not installed"),
    ({"docker_info": ("", "timeout")}, "docker", "no answer within the time limit"),
    ({"docker_info": ('{"Runtimes": {}, "CDISpecDirs": []}', "ok")}, "docker", "runtime nvidia"),
    ({"daemon_json": ("{oops", "ok")}, "docker", "is not JSON"),
    ({"daemon_json": ("", "timeout")}, "docker", "cannot be read"),
    ({"docker_images": ("", "ok")}, "image", "not on the host"),
    ({"docker_images": ("", "timeout")}, "image", ""),
]  # fmt: skip


@pytest.mark.parametrize(("sections", "name", "said"), SECTIONS)
def test_what_is_wrong_on_the_host_is_named_by_its_check(sections: dict[str, tuple[str, str]], name: str, said: str) -> None:
    host = HOST
    for section, (text, status) in sections.items():
        host = host.set(section, text, status)
    found = checks(host)
    assert verdicts.function(found) == "not proven"
    failed = {each.name: each.detail for each in found if each.status == "fail"}
    assert name in failed and said in failed[name], found
    assert all(each.detail for each in found if each.status != "pass")


MEASURED: list[tuple[SmiReport | None, Sample | None, str, str]] = [
    (None, RAN, "gpus-in-container", "docker: no such image"),
    (gpus(7), RAN, "gpus-in-container", "7 seen in the container, 8 expected"),
    (gpus(0), RAN, "gpus-in-container", "0 seen"),
    (SEEN, None, "cuda-kernel", "no start"),
    (SEEN, Sample(**{**RAN, "failed": "cu_init: RuntimeError: cuInit returned 999"}), "cuda-kernel", "cuInit returned 999"),
    (SEEN, ran(gpus=["NVIDIA H200"] * 7), "cuda-kernel", "7"),
    (SEEN, ran(gpus=[]), "cuda-kernel", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "sample", "name", "said"), MEASURED)
def test_what_went_wrong_in_the_container_is_named(seen: SmiReport | None, sample: Sample | None, name: str, said: str) -> None:
    found = checks(seen=seen, sample=sample)
    assert verdicts.function(found) == "not proven"
    assert said in {each.name: each.detail for each in found if each.status == "fail"}[name]
    assert any(line.startswith(f"{name}: ") for line in verdicts.problems(found))


def test_a_skipped_check_is_not_proven_and_a_warning_is() -> None:
    assert verdicts.function([Check("a", "pass"), Check("b", "skipped", "why")]) == "not proven"
    assert verdicts.function([Check("a", "pass"), Check("b", "not-judged")]) == "not proven"
    assert verdicts.function([Check("a", "pass"), Check("b", "warn")]) == "proven"


def test_nothing_that_was_looked_at_proves_nothing() -> None:
    assert verdicts.function([]) == "not proven"


def test_a_cdi_spec_whose_driver_cannot_be_told_is_no_pass() -> None:
    lines = "\n".join(line for line in HOST.sections["cdi"][1] if "library" not in line)
    assert {each.name: each.status for each in checks(HOST.set("cdi", lines))}["cdi-spec"] == "fail"


def test_a_driver_that_says_it_is_a_stand_in_makes_everything_simulated() -> None:
    assert verdicts.hardware(HOST.survey) == "real"
    assert (
        verdicts.hardware(HOST.set("driver_loaded", "NVRM version: 580.159.04 (stand-in: simulated GPU)").survey) == "simulated"
    )
    assert verdicts.hardware(HOST.set("driver_loaded", "", "absent").survey) == "unknown"
    assert verdicts.hardware(HOST.set("driver_loaded", "", "timeout").survey) == "unknown"
