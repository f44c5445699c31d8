"""The GPUs and their driver, as the host's kernel sees them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from testinfra.host import Host

from bringup.catalog import Catalog
from bringup.settings import Settings
from tests.host.expected import Board, branch_problem, module_problem

Smi = list[tuple[str, str, str]]  # driver version, bus address, name
pytestmark = pytest.mark.usefixtures("gpu_host")


@pytest.fixture(scope="session")
def smi(host: Host) -> Smi:
    """Every GPU that nvidia-smi shows; none where it fails."""
    lines = host.run("nvidia-smi --query-gpu=driver_version,pci.bus_id,name --format=csv,noheader").stdout.splitlines()
    rows = [tuple(line.split(", ", 2)) for line in lines]
    return [(row[0], row[1], row[2]) for row in rows if len(row) == 3]


def test_gpus_are_known_and_as_many_as_expected(boards: tuple[Board, ...], settings: Settings) -> None:
    assert boards, "no NVIDIA GPU on the PCI bus"
    assert not [each.id for each in boards if each.gpu is None], "not in the catalog"
    if settings.expected_count is not None:
        assert len(boards) == settings.expected_count, "gpu_expected_count"


def test_nvidia_smi_shows_every_gpu_on_the_bus(boards: tuple[Board, ...], smi: Smi, settings: Settings) -> None:
    shown = {address.lower()[-len("0000:00:00.0") :] for _, address, _ in smi}  # nvidia-smi writes the domain in 8 digits
    assert shown == {each.address for each in boards}
    model = settings.expected_model or ""
    assert not [name for _, _, name in smi if model.casefold() not in name.casefold()], f"gpu_expected_model is {model}"


def test_driver_loaded_is_the_one_installed(host: Host, loaded: str | None, smi: Smi) -> None:
    assert loaded, "no NVIDIA driver is loaded"
    assert host.run("modinfo -F version nvidia").stdout.strip() == loaded, "kernel module on disk"
    libraries = host.run("ldconfig -p | sed -n 's/.*libcuda[.]so[.]1 .*=> //p' | xargs -r readlink -f").stdout.split()
    assert {each.split(".so.")[-1] for each in libraries} == {loaded}, "libcuda on disk"
    assert {version for version, _, _ in smi} == {loaded}, "nvidia-smi"


def test_driver_is_of_the_branch_asked_for(settings: Settings, catalog: Catalog, loaded: str | None) -> None:
    assert loaded, "no NVIDIA driver is loaded"
    assert branch_problem(settings, catalog, loaded, datetime.now(tz=UTC).date()) is None


def test_kernel_module_fits_the_gpus(driver_text: str, settings: Settings, boards: tuple[Board, ...]) -> None:
    assert driver_text, "no NVIDIA driver is loaded"
    kind = "open" if "Open Kernel Module" in driver_text else "proprietary"
    assert module_problem(settings, boards, kind) is None


def test_uvm_is_loaded_and_nouveau_is_not(host: Host) -> None:
    modules = host.run("ls /sys/module").stdout.split()
    assert "nvidia_uvm" in modules, "CUDA needs it"
    assert "nouveau" not in modules
    assert "nova_core" not in modules


def test_persistence_daemon_runs(host: Host, settings: Settings, loaded: str | None) -> None:
    daemon = host.service("nvidia-persistenced")
    adopted = settings.driver_source == "preinstalled" or not host.package("nvidia-driver-cuda").is_installed
    if loaded and adopted and not daemon.exists:
        pytest.skip("the driver was there before and has no persistence daemon")
    assert daemon.is_running


def test_no_reboot_is_pending(host: Host) -> None:
    assert not host.file("/run/reboot-required").exists
