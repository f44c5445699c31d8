"""What is wrong with the hardware is named with its cause and the next step; what a driver does not say is no pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bringup import catalog, verdicts
from bringup.health import health_checks, xids
from bringup.report import Check
from bringup.smi import SmiReport, parse_smi
from bringup.survey.saved import mismatch
from tests.smi_gpus import gpu

SAMPLES = Path(__file__).parent / "samples"
CATALOG = catalog.load()


def checks(report: SmiReport, log: list[str] | None = None) -> dict[str, Check]:
    return {each.name: each for each in health_checks(report, [] if log is None else log, CATALOG)}


def of(**values: Any) -> dict[str, Check]:
    return checks(SmiReport(driver_version="580.159.04", cuda_version="13.0", gpus=[gpu(), gpu(**values)]))


def test_a_real_h200_is_sound() -> None:
    found = checks(parse_smi((SAMPLES / "nvidia-smi-q-h200.xml").read_text()))
    assert {each.status for each in found.values()} == {"pass"}
    assert verdicts.function(found.values()) == "proven"


FILES = {  # file: the checks that are not passed, each with words of its cause
    "t4-driver-470": {},
    "v100-driver-525-page-pending": {"row-remapping": "reset the GPU or reboot", "ecc": "1 uncorrectable"},
    "a10-driver-535": {},
    "a100-driver-535-mig-on-without-instance": {"mig": "MIG is on without any instance"},
    "a100-driver-550-mig-two-instances": {},
    "a100-driver-550-mig-pending": {"mig": "MIG is Disabled and Enabled is pending"},
    "h100-driver-550-fabric-in-progress": {"fabric": "CUDA error 802"},
    "h100-driver-570-fabric-failed": {"fabric": "Insufficient Resources"},
    "l4-driver-570-half-the-lanes": {"pcie-width": "x8 of x16"},
    "l40s-driver-580-slowed-by-heat": {"clocks": "hw_thermal_slowdown"},
    "rtx-4090-driver-580-no-ecc-idle-link": {},
    "h200-driver-580-row-pending": {"row-remapping": "waits for its spare one"},
    "h200-driver-580-row-failed": {"row-remapping": "replace the card"},
    "b200-driver-590-uncorrectable": {"ecc": "3 uncorrectable"},
    "b200-driver-620-asks-for-reset": {"recovery": "Reset"},
    "vgpu-a10-24q-driver-535": {"health-unknown": "PCIe width"},
    "gpu-lost-driver-570": {"gpus-answer": "lost from the bus", "health-unknown": "PCIe width, clocks' reasons"},
}


def test_every_sample_is_used() -> None:
    assert {each.stem for each in (SAMPLES / "nvidia-smi").glob("*.xml")} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_over_driver_generations(name: str) -> None:
    report = parse_smi((SAMPLES / "nvidia-smi" / f"{name}.xml").read_text())
    assert mismatch(report, SmiReport, "") is None
    found = checks(report)
    wrong = {each.name: each.detail for each in found.values() if each.status != "pass"}
    assert set(wrong) == set(FILES[name]), wrong
    for check, words in FILES[name].items():
        assert words in wrong[check]
    warned = {"clocks", "health-unknown"}
    assert verdicts.function(found.values()) == ("not proven" if set(wrong) - warned else "proven")


def test_a_lost_gpu_has_no_name_that_was_made_up() -> None:
    (lost,) = parse_smi((SAMPLES / "nvidia-smi" / "gpu-lost-driver-570.xml").read_text())["gpus"]
    assert (lost["name"], lost["memory_total_mib"], lost["link_width"], lost["event_reasons"]) == (None, None, None, None)


@pytest.mark.parametrize(
    ("values", "name", "said"),
    [
        ({"link_width": 4}, "pcie-width", "x4 of x16"),
        ({"remap_pending": True}, "row-remapping", "check again"),
        ({"remap_pending": True, "remap_failure": True}, "row-remapping", "replace the card"),
        ({"ecc_uncorrectable": 7}, "ecc", "7 uncorrectable"),
        ({"fabric_state": "Not Started"}, "fabric", "Not Started"),
        ({"fabric_state": "Completed", "fabric_status": "Unknown Error"}, "fabric", "Unknown Error"),
        ({"mig": "Enabled", "mig_pending": "Enabled", "mig_devices": 0}, "mig", "without any instance"),
        ({"mig": "Enabled", "mig_pending": "Disabled", "mig_devices": 2}, "mig", "Disabled is pending"),
        ({"recovery_action": "Reboot"}, "recovery", "Reboot"),
        ({"recovery_action": "Drain and Reset"}, "recovery", "Drain and Reset"),
    ],
)
def test_one_sick_gpu_of_two_is_enough(values: dict[str, Any], name: str, said: str) -> None:
    found = of(pci_address="0000:61:00.0", **values)
    assert found[name].status == "fail" and said in found[name].detail and "GPU 0000:61:00.0" in found[name].detail
    assert verdicts.function(found.values()) == "not proven"


@pytest.mark.parametrize(
    "values",
    [
        {"link_generation": 1, "link_generation_max": 5, "performance_state": "P8"},  # an idle link saves power
        {"fabric_state": None, "fabric_status": None},
        {"fabric_state": "Completed", "fabric_status": "Success"},
        {"mig": "Enabled", "mig_pending": "Enabled", "mig_devices": 7},
        {"remap_pending": None, "remap_failure": None},  # boards before Ampere
        {"event_reasons": ["sw_power_cap"]},
        {"ecc_uncorrectable": None},
    ],
)
def test_what_is_sound_raises_no_alarm(values: dict[str, Any]) -> None:
    assert {each.status for each in of(**values).values()} == {"pass"}


def line(code: int, rest: str = "pid=4242, name=python3, something") -> str:
    return f"[  812.1] NVRM: Xid (PCI:0000:61:00): {code}, {rest}"


@pytest.mark.parametrize(
    ("code", "said"),
    [(79, "fallen off the bus"), (119, "does not answer"), (120, "GSP"), (48, "double bit"), (64, "replace the card"), (74, "NVLink"),
     (62, "halted")],
)  # fmt: skip
def test_an_xid_that_means_broken_hardware_fails(code: int, said: str) -> None:
    check = xids([line(code)], CATALOG)
    assert check.status == "fail" and f"Xid {code} (1 ×) of GPU 0000:61:00" in check.detail and said in check.detail


@pytest.mark.parametrize("code", [61, 95, 140, 143])
def test_an_xid_that_is_only_recalled_warns_and_says_so(code: int) -> None:
    check = xids([line(code)], CATALOG)
    assert check.status == "warn" and "from memory, so it only warns" in check.detail


@pytest.mark.parametrize("code", [13, 31, 43, 45, 63, 94, 999])
def test_an_xid_that_a_program_makes_or_nobody_knows_warns(code: int) -> None:
    assert xids([line(code)], CATALOG).status == "warn"


def test_the_worst_xid_comes_first_and_repeats_are_counted() -> None:
    check = xids([line(31), line(31), line(79), "usb 1-1: new device", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"], CATALOG)
    assert check.detail.startswith("Xid 79 (1 ×)") and "Xid 31 (2 ×)" in check.detail


def test_other_lines_of_the_driver_are_no_xids() -> None:
    assert xids(["NVRM: GPU 0000:61:00.0: RmInitAdapter failed!", "nvidia-modeset: Loading"], CATALOG).status == "pass"


def test_a_kernel_log_that_could_not_be_read_is_no_pass() -> None:
    assert xids(None, CATALOG).status == "warn"
