from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from e2e.lab.errors import LabError
from e2e.lab.gpu import PROFILES, gpu_profile, prepare_gpu
from e2e.lab.packages import STANDINS

_SMI = STANDINS / "packages" / "driver" / "nvidia-driver-cuda"


def _devices(folder: Path) -> dict[str, tuple[str, str, str]]:
    return {
        device.name: (_read(device, "vendor"), _read(device, "device"), _read(device, "class"))
        for device in (folder / "pci" / "devices").iterdir()
    }


def _read(device: Path, name: str) -> str:
    return (device / name).read_text().strip()


@pytest.mark.parametrize(("name", "gpus", "switches"), [("none", 0, 0), ("h200", 1, 0), ("h200x8", 8, 4)])
def test_a_profile_has_its_gpus_and_switches_on_the_bus(tmp_path: Path, name: str, gpus: int, switches: int) -> None:
    prepare_gpu(gpu_profile(name), tmp_path)
    seen = list(_devices(tmp_path).values())
    assert seen.count(("0x10de", "0x2335", "0x030200")) == gpus
    assert seen.count(("0x10de", "0x22a3", "0x068000")) == switches
    assert len(seen) == gpus + switches + 1  # and a network card


def test_the_config_registers_say_the_same_as_the_files_beside_them(tmp_path: Path) -> None:
    prepare_gpu(gpu_profile("h200"), tmp_path)
    device = tmp_path / "pci" / "devices" / "0000:00:06.0"
    config = (device / "config").read_bytes()
    vendor, number = struct.unpack_from("<HH", config)
    subsystem = struct.unpack_from("<HH", config, 0x2C)
    assert (vendor, number) == (0x10DE, 0x2335)
    assert subsystem == (0x10DE, int(_read(device, "subsystem_device"), 16))
    assert struct.unpack_from("<I", config, 8)[0] >> 8 == 0x030200
    first_window = _read(device, "resource").splitlines()[0].split()[0]
    assert struct.unpack_from("<I", config, 0x10)[0] & ~0xF == int(first_window, 16)


def test_gpus_have_names_of_their_own_that_stay_the_same(tmp_path: Path) -> None:
    def uuids(host: str) -> list[str]:
        prepare_gpu(gpu_profile("h200x8"), tmp_path / host)
        texts = [file.read_text() for file in sorted((tmp_path / host / "gpus").iterdir())]
        return [found for text in texts for found in re.findall(r"^uuid=(.*)$", text, re.MULTILINE)]

    first = uuids("a")
    assert len({*first, *uuids("b")}) == 16
    assert uuids("a") == first


def test_a_host_can_be_given_another_profile_in_the_same_folder(tmp_path: Path) -> None:
    prepare_gpu(gpu_profile("h200x8"), tmp_path)
    prepare_gpu(gpu_profile("none"), tmp_path)
    assert [vendor for vendor, _, _ in _devices(tmp_path).values()] == ["0x1af4"]
    assert not list((tmp_path / "gpus").iterdir())


def test_every_value_that_nvidia_smi_shows_is_known_of_every_gpu(tmp_path: Path) -> None:
    computed = {"timestamp", "driver_version", "count", "index", "persistence_mode", "gsp"}
    computed |= {"fabric_state", "fabric_status", "fabric_clique", "fabric_cluster"}
    wanted = set(re.findall("@([a-z0-9_]+)@", (_SMI / "gpu.xml").read_text()))
    wanted |= {key for key in re.findall(r'"([^"]*)"\},', (_SMI / "fields.h").read_text()) if not key.startswith("=")}
    for profile in PROFILES.values():
        prepare_gpu(profile, tmp_path / profile.name)
        for file in (tmp_path / profile.name / "gpus").iterdir():
            known = {line.partition("=")[0] for line in file.read_text().splitlines()}
            assert wanted - known - computed == set()


def test_profiles_show_what_the_open_modules_do_not_run_and_who_boots_from_an_initramfs(tmp_path: Path) -> None:
    def texts(name: str) -> tuple[list[str], list[str]]:
        prepare_gpu(gpu_profile(name), tmp_path / name)
        gpus = [file.read_text().splitlines() for file in sorted((tmp_path / name / "gpus").iterdir())]
        profile = (tmp_path / name / "profile").read_text().splitlines()
        return profile, [line for gpu in gpus for line in gpu if line.startswith("gsp_processor=")]

    assert texts("mixed")[1] == ["gsp_processor=no", "gsp_processor=yes"]
    assert texts("v100")[1] == ["gsp_processor=no"]
    assert texts("t4")[1] == ["gsp_processor=yes"]
    assert texts("h200-initramfs")[0][1:] == ["nouveau=yes", "initramfs=yes"]
    assert texts("h200")[0][1:] == ["nouveau=yes", "initramfs=no"]


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"'h100': use one of none, h200, h200x8"):
        gpu_profile("h100")
