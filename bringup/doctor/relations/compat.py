"""Relations of image, driver and GPU: what CUDA is needed and given, which GPUs a build has code for."""

from __future__ import annotations

import re

from bringup import catalog, versions
from bringup.doctor.facts import Facts
from bringup.doctor.relations.registry import relation


@relation
def image_requires_newer_cuda(facts: Facts) -> list[str]:
    return _newer(facts, facts.find(r"NVIDIA_REQUIRE_CUDA=\"?cuda>=(\d+\.\d+)"))


@relation
def torch_newer_than_driver(facts: Facts) -> list[str]:
    """CUDA 12 builds run on any driver of CUDA 12, by minor-version compatibility."""
    need = facts.find(r"torch\.version\.cuda\W{1,4}(\d+\.\d+)")
    return _newer(facts, need.split(".")[0] + ".0" if need else None)


def _newer(facts: Facts, need: str | None) -> list[str]:
    have = facts.find(r"CUDA Version\s*:\s*(\d+\.\d+)") or (_cuda_of(facts.driver) if facts.driver else None)
    return (
        [f"CUDA {need} is needed, the driver gives {have}"] if need and have and versions.key(have) < versions.key(need) else []
    )


def _cuda_of(driver: str) -> str | None:
    branch = versions.branch_or_none(driver)
    found = catalog.load().branch(branch) if branch else None
    return found.cuda if found else None


@relation
def torch_without_code_for_the_gpu(facts: Facts) -> list[str]:
    text = facts.everything
    capability = re.search(r"\"?capability\"?\s*[:=]\s*[\[(]\s*(\d+),\s*(\d+)", text) or re.search(
        r"compute_cap\w*\D{1,4}(\d+)\.(\d)", text
    )
    listed = re.search(r"\"?arch_list\"?\(?\)?\s*[:=]?\s*\[([^\]]*)\]|^\s*\[('sm_[^\]]*)\]", text, re.M)
    if not capability or not listed:
        return []
    arches = listed[1] or listed[2]
    major, minor = int(capability[1]), int(capability[2])
    native = [int(each) for each in re.findall(r"sm_(\d+)", arches)]
    if any(each // 10 == major and each % 10 <= minor for each in native) or re.search(r"compute_\d+", arches):
        return []
    return [f"the GPU is sm_{major}{minor}, torch has code for {arches.strip()}"]


@relation
def torch_compiles_at_first_use(facts: Facts) -> list[str]:
    text = facts.everything
    capability = re.search(r"\"?capability\"?\s*[:=]\s*[\[(]\s*(\d+),\s*(\d+)", text)
    listed = re.search(r"\"?arch_list\"?\s*[:=]\s*\[([^\]]*)\]", text)
    if capability and listed and re.search(r"compute_\d+", listed[1]):
        major = int(capability[1])
        if not any(int(each) // 10 == major for each in re.findall(r"sm_(\d+)", listed[1])):
            return [f"no code for sm_{capability[1]}{capability[2]}, only PTX: {listed[1].strip()}"]
    return []


@relation
def compat_library_differs(facts: Facts) -> list[str]:
    found = facts.find(r"libcuda\.so\.(\d{3}\.\d+(?:\.\d+)?)", facts.command(r"^(?:ls|readlink|find)\b.*compat") or "")
    driver = facts.driver
    return [f"compat library {found}, driver {driver}"] if found and driver and versions.key(found) < versions.key(driver) else []


@relation
def compat_on_a_consumer_gpu(facts: Facts) -> list[str]:
    """A compat folder in the image, a GPU that has no forward compatibility, and an image newer than the driver."""
    text = facts.everything
    name = re.search(r"(?:NVIDIA )?(?:GeForce|Quadro|TITAN|RTX)\b[^\n;,|]{0,24}", text)
    need = facts.find(r"(?:image CUDA|CUDA_VERSION=|NVIDIA_REQUIRE_CUDA=\"?cuda>=)\s*(\d+\.\d+)")
    newer = _newer(facts, need)
    return [f"{name[0].strip()}, and a compat folder", *newer] if name and "compat" in text and newer else []
