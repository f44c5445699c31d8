"""nvidia-smi's XML: a real capture, and what drivers and hosts make of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bringup.smi import SmiError, SmiReport, parse_smi
from bringup.survey.saved import mismatch

H200 = (Path(__file__).parent / "samples" / "nvidia-smi-q-h200.xml").read_text()


def test_a_real_h200() -> None:
    report = parse_smi(H200)
    assert mismatch(report, SmiReport, "") is None
    assert report["driver_version"] == "580.159.04" and report["cuda_version"] == "13.0"
    assert report["gpus"] == [
        {
            "name": "NVIDIA H200", "uuid": "GPU-00000000-1111-2222-3333-444444444444", "pci_address": "0000:00:06.0",
            "memory_total_mib": 143771, "memory_used_mib": 0, "pci_id": "10de:2335", "pci_subsystem": "10de:18bf", "ecc": "Enabled",
            "ecc_uncorrectable": 0, "remap_pending": False, "remap_failure": False, "mig": "Disabled", "mig_pending": "Disabled",
            "mig_devices": 0, "persistence": "Enabled", "performance_state": "P0", "link_generation": 5, "link_generation_max": 5,
            "link_width": 16, "link_width_max": 16, "event_reasons": [], "fabric_state": None, "fabric_status": None,
            "recovery_action": "None", "temperature_c": 37, "power_w": 127.03,
        }
    ]  # fmt: skip


def test_what_the_driver_prints_around_the_xml_is_ignored() -> None:
    """The infoROM warning comes after it; stderr is in the same stream."""
    wanted = parse_smi(H200)
    assert parse_smi(f"WARNING: You should always run with libnvidia-ml.so\n{H200}") == wanted
    assert parse_smi(f"{H200}\nWARNING: infoROM is corrupted at gpu 0000:00:06.0\n") == wanted


def test_what_a_driver_does_not_say_is_none_and_never_a_guess() -> None:
    """As other boards, vGPUs and sick GPUs say it."""
    for nothing in ("N/A", "[N/A]", "Not Supported", "[Not Supported]", "Unknown Error", "[Unknown Error]", "ERR!", ""):
        text = re.sub(r"<(total|used|current_ecc|gpu_temp|persistence_mode|current_mig)>[^<]*<", rf"<\1>{nothing}<", H200)
        text = re.sub(r"<(instant|average)_power_draw>[^<]*<", rf"<\1_power_draw>{nothing}<", text)
        gpu = parse_smi(text)["gpus"][0]
        for key in ("memory_total_mib", "memory_used_mib", "ecc", "mig", "temperature_c", "persistence", "power_w"):
            assert gpu[key] is None, (nothing, key)
        assert gpu["name"] == "NVIDIA H200"


def test_an_older_drivers_names() -> None:
    old = (
        "<nvidia_smi_log><driver_version>470.256.02</driver_version><gpu id='00000000:3B:00.0'><product_name>Tesla T4</product_name>"
        "<power_readings><power_draw>27.65 W</power_draw></power_readings><fb_memory_usage><total>15109 MiB</total></fb_memory_usage>"
        "</gpu></nvidia_smi_log>"
    )
    report = parse_smi(old)
    assert mismatch(report, SmiReport, "") is None and report["cuda_version"] is None
    gpu = report["gpus"][0]
    assert (gpu["pci_address"], gpu["power_w"], gpu["memory_total_mib"]) == ("0000:3b:00.0", 27.65, 15109)


def test_no_gpu_is_a_report_without_gpus() -> None:
    assert parse_smi("<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>")["gpus"] == []


BROKEN = [
    ("", "printed no XML but: nothing"),
    (
        "\n\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure",
        "but: NVIDIA-SMI has failed because",
    ),
    (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.159",
        "Driver/library version mismatch",
    ),
    ("exec: nvidia-smi: not found", "but: exec: nvidia-smi: not found"),
    (H200[: len(H200) // 2], "XML is broken"),
    ("<nvidia_smi_log", "XML is broken"),
    ("<nvidia_smi_log><gpu></nvidia_smi_log>", "XML is broken"),
]


@pytest.mark.parametrize(("text", "said"), BROKEN, ids=[said for _, said in BROKEN])
def test_what_is_no_report_is_said_in_its_own_words(text: str, said: str) -> None:
    with pytest.raises(SmiError, match=re.escape(said)):
        parse_smi(text)


def test_a_report_cut_off_anywhere_is_an_error_or_nothing() -> None:
    for end in range(0, len(H200) - 20, 97):
        with pytest.raises(SmiError):
            parse_smi(H200[:end])
