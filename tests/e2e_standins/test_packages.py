from __future__ import annotations

import hashlib
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from e2e.lab import packages

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

_RELEASE = packages.DriverRelease("580.159.04", cuda="13.0")

# the children of <gpu> as nvidia-smi 580.159.04 printed them on an H200
_GPU_ELEMENTS = """
product_name product_brand product_architecture display_mode display_attached display_active persistence_mode addressing_mode mig_mode
mig_devices accounting_mode accounting_mode_buffer_size driver_model serial uuid pdi minor_number vbios_version multigpu_board board_id
board_part_number gpu_part_number gpu_fru_part_number platformInfo inforom_version inforom_bbx_flush gpu_operation_mode c2c_mode
gpu_virtualization_mode gpu_recovery_action gsp_firmware_version ibmnpu pci fan_speed performance_state clocks_event_reasons
clocks_event_reasons_counters sparse_operation_mode fb_memory_usage bar1_memory_usage cc_protected_memory_usage compute_mode utilization
encoder_stats fbc_stats dram_encryption_mode ecc_mode ecc_errors retired_pages remapped_rows temperature supported_gpu_target_temp
gpu_power_readings gpu_memory_power_readings module_power_readings power_smoothing power_profiles clocks applications_clocks
default_applications_clocks deferred_clocks max_clocks max_customer_boost_clocks clock_policy fabric supported_clocks processes
accounted_processes capabilities
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packages, "_C_FLAGS", f"{packages._C_FLAGS} -Werror")
        packages.build_driver(_RELEASE, folder)
        packages.build_toolkit(packages.TOOLKITS[0], folder)
        packages.build_headers(folder, "6.1.0-test")
    return folder


def _field(package: Path, name: str) -> str:
    return subprocess.run(["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True).stdout


def test_every_package_says_that_it_is_a_stand_in(built: Path) -> None:
    found = {path.name.split("_")[0]: path for path in built.glob("*.deb")}
    assert {"libcuda1", "libnvidia-ml1", "nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced"} <= set(found)
    assert {"nvidia-open-580", "nvidia-fabricmanager", "nvidia-container-toolkit", "linux-headers-6.1.0-test"} <= set(found)
    for package in found.values():
        assert "stand-in" in _field(package, "Description")
        assert "@" not in _field(package, "Depends")


def test_the_same_sources_give_the_same_packages(built: Path, tmp_path: Path) -> None:
    packages.build_driver(_RELEASE, tmp_path)
    for path in tmp_path.glob("*.deb"):
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256((built / path.name).read_bytes()).digest(), path.name


def test_another_release_gives_packages_of_that_version(tmp_path: Path) -> None:
    packages.build_driver(packages.DriverRelease("570.211.01", cuda="12.8"), tmp_path)
    assert (tmp_path / "nvidia-open-570_570.211.01-1_amd64.deb").exists()
    assert "libcuda1 (= 570.211.01-1)" in _field(tmp_path / "nvidia-driver-cuda_570.211.01-1_amd64.deb", "Depends")


def test_names_follow_nvidias_renames(tmp_path: Path) -> None:
    names = {}
    for driver in packages.DRIVERS:
        packages.build_driver(driver, tmp_path / driver.version)
        names[driver.branch] = {path.name.split("_")[0] for path in (tmp_path / driver.version).glob("*.deb")}
    assert {"nvidia-fabricmanager-570", "nvidia-open-570", "cuda-drivers-570", "nvidia-kernel-dkms"} <= names["570"]
    assert {"nvidia-fabricmanager", "nvidia-open-580", "cuda-drivers-580", "nvidia-kernel-dkms"} <= names["580"]
    assert {"nvidia-fabricmanager", "nvidia-open", "nvidia-kernel-open-dkms"} <= names["620"]
    assert not {"nvidia-kernel-dkms", "cuda-drivers"} & names["620"]


@pytest.mark.parametrize(
    ("package", "kind", "license"),
    [("nvidia-kernel-open-dkms", "open", "Dual MIT/GPL"), ("nvidia-kernel-dkms", "proprietary", "NVIDIA")],
)
def test_each_kind_of_module_has_its_licence_and_excludes_the_other(
    built: Path, tmp_path: Path, package: str, kind: str, license: str
) -> None:
    (deb,) = built.glob(f"{package}_*.deb")
    subprocess.run(["dpkg-deb", "--extract", deb, tmp_path], check=True)
    module = tmp_path / "usr/src/nvidia-580.159.04/stand-in/nvidia.ko"
    assert f"license={license}\0".encode() in module.read_bytes()
    assert kind in _field(deb, "Description")
    assert _field(deb, "Conflicts").strip() in {"nvidia-kernel-open-dkms", "nvidia-kernel-dkms"} - {package}


def test_nvidia_smi_without_a_driver_fails_as_the_real_one(built: Path, tmp_path: Path) -> None:
    for name in ("nvidia-driver-cuda", "libnvidia-ml1"):
        (package,) = built.glob(f"{name}_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)
    smi = [str(tmp_path / "usr/bin/nvidia-smi"), "-L"]
    libraries = {"LD_LIBRARY_PATH": str(tmp_path / "usr/lib/x86_64-linux-gnu")}
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has NVIDIA's driver")
    done = subprocess.run(smi, capture_output=True, text=True, env=libraries)
    assert done.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in done.stdout
    assert subprocess.run(smi, capture_output=True, env={}).returncode == 12


def test_the_xml_of_a_gpu_has_the_elements_of_a_real_one() -> None:
    text = (packages.STANDINS / "packages/driver/nvidia-driver-cuda/gpu.xml").read_text()
    assert [child.tag for child in ElementTree.fromstring(text)] == _GPU_ELEMENTS.split()
