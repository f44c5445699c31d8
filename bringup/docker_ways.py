"""The ways in which people ask Docker for GPUs, and which of them work on a host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bringup.report import Check

WAYS: Mapping[str, str] = {
    "cdi": "--device nvidia.com/gpu=all",
    "runtime": "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all",
    "gpus": "--gpus all",
}
"""name -> the options of `docker run`, as people type them."""


def ways_check(found: Mapping[str, int | str] | None, gpus: int, injection: Literal["cdi", "runtime"]) -> Check:
    """One check for all ways. The one that the host is set up for must show every GPU; of the others it is told which work.

    + found: name of a way -> how many GPUs a container saw by it, or why there was none; None where the host did not answer
    """
    if not found:
        return Check("docker-ways", "skipped", "the host did not answer")
    words = []
    for name, options in WAYS.items():
        seen = found.get(name, "was not tried")
        said = f"{seen} of {gpus} GPUs" if isinstance(seen, int) else f"none ({seen})"
        words.append(f"`{options}`: {said}")
    detail = "; ".join(words)
    if isinstance(found.get(injection), str) or injection not in found:
        return Check("docker-ways", "fail", detail)
    return Check(
        "docker-ways", "pass" if found[injection] == gpus else "fail", detail, f"{found[injection]} GPUs", f"{gpus} GPUs"
    )
