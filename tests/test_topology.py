"""How GPUs are joined: links held against the other GPUs of the host; what a guest cannot change is told and no warning."""

from __future__ import annotations

import pytest

from bringup.report import Check
from bringup.topology import Topology, links, topology_checks
from facts.verification import ContainerGpus
from tests.smi_gpus import gpu
from tests.surveys import BASES

EIGHT = BASES["converged debian13 8 x h200"]()
# as `lspci -vvv` says it of a bridge above a GPU
ACS_ON = "0000:40:01.1 ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-"
ACS_OFF = "0000:40:01.1 ACSCtl: SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"


def status(*counts: int, of: int = 18, speed: str = "26.562 GB/s") -> list[str]:
    lines = []
    for number, up in enumerate(counts):
        lines.append(f"GPU {number}: NVIDIA H200 (UUID: GPU-{number})")
        lines += [f"\t Link {at}: {speed if at < up else '<inactive>'}" for at in range(of)]
    return lines


def checks(count: int = 2, virtualization: str = "none", names: tuple[str, ...] = (), **found: object) -> dict[str, Check]:
    topology = Topology(nvlink=status(*[18] * count), acs=[ACS_OFF], iommu={}, numa_nodes=1)
    topology.update(found)  # type: ignore[typeddict-item]
    seen = [gpu(name=names[at] if names else "NVIDIA H200") for at in range(count)]
    survey = EIGHT.set("virtualization", virtualization).survey
    return {each.name: each for each in topology_checks(topology, seen, survey)}


def test_gpus_that_are_joined_as_they_shall_be_pass() -> None:
    found = checks()
    assert {each.status for each in found.values()} == {"pass"} and "18 links" in found["nvlink"].detail


def test_one_gpu_alone_is_joined_with_nothing() -> None:
    assert checks(1) == {}


def test_a_link_that_is_down_at_one_gpu_fails() -> None:
    found = checks(nvlink=status(18, 17))["nvlink"]
    assert found.status == "fail" and "GPU 1: 17 of 18 links are up" in found.detail


def test_fewer_links_by_design_are_no_failure() -> None:
    """An H100 NVL has 12 of 18, all of its kind."""
    assert checks(nvlink=status(12, 12, speed="25 GB/s"))["nvlink"].status == "pass"
    assert checks(nvlink=status(12, 18), names=("NVIDIA H100 NVL", "NVIDIA H200"))["nvlink"].status == "warn"


@pytest.mark.parametrize("lines", [status(0, 0), ["GPU 0: Tesla T4 (UUID: GPU-0)", "GPU 1: Tesla T4 (UUID: GPU-1)"], []])
def test_boards_without_nvlink_have_nothing_to_judge(lines: list[str]) -> None:
    assert "nvlink" not in checks(nvlink=lines)


def test_what_the_driver_does_not_tell_is_a_warning() -> None:
    assert checks(nvlink=None)["nvlink"].status == "warn"
    assert (
        checks(nvlink=status(18) + status(18, speed="13 GB/s")[0:0] + status(0, 18, speed="13 GB/s")[19:])["nvlink"].status
        == "warn"
    )


def test_acs_on_bare_metal_is_named_with_the_command_and_in_a_guest_only_told() -> None:
    metal, guest = checks(acs=[ACS_ON])["peer-to-peer"], checks(acs=[ACS_ON], virtualization="kvm")["peer-to-peer"]
    assert metal.status == "warn" and "setpci -s 0000:40:01.1 ECAP_ACS+0x6.w=0000" in metal.detail
    assert guest.status == "pass" and "in a guest (kvm)" in guest.detail and "setpci" not in guest.detail


@pytest.mark.parametrize(("kind", "verdict"), [("DMA", "warn"), ("DMA-FQ", "warn"), ("identity", "pass")])
def test_an_iommu_that_translates_is_named_with_its_cure(kind: str, verdict: str) -> None:
    found = checks(iommu={"0000:06:00.0": kind})["peer-to-peer"]
    assert found.status == verdict and ("iommu=pt" in found.detail) == (verdict == "warn")


def test_where_neither_could_be_read_nothing_is_said_of_it() -> None:
    assert "peer-to-peer" not in checks(acs=None)


def test_gpus_without_a_memory_node_on_a_host_with_two_are_a_warning() -> None:
    assert "numa" not in checks()
    found = checks(numa_nodes=2)["numa"]
    assert found.status == "pass" and found.detail == "node 0: 8 GPUs"
    lost = EIGHT.set("pci", "\n".join(EIGHT.sections["pci"][1]).replace(" 0 nvidia ", " -1 nvidia "))
    (check,) = [
        each
        for each in topology_checks(Topology(nvlink=[], acs=None, iommu={}, numa_nodes=2), [gpu(), gpu()], lost.survey)
        if each.name == "numa"
    ]
    assert check.status == "warn" and "0000:06:00.0" in check.detail


def test_what_the_host_says_is_read_beside_the_containers_xml() -> None:
    host = [
        "nodes 2",
        "iommu 0000:06:00.0 DMA-FQ",
        f"acs {ACS_ON}",
        *(f"nvlink {each}" for each in status(18, 18)),
        "exit 1",
        "oops",
    ]
    found = ContainerGpus().process(host)
    assert found["topology"] == Topology(nvlink=status(18, 18), acs=[ACS_ON], iommu={"0000:06:00.0": "DMA-FQ"}, numa_nodes=2)
    assert links(found["topology"]["nvlink"] or [])["1"] == ["26.562 GB/s"] * 18
    assert ContainerGpus().process(["exit 1"])["topology"] == Topology(nvlink=None, acs=None, iommu={}, numa_nodes=None)
