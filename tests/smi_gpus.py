"""Records of GPUs for tests."""

from __future__ import annotations

from typing import Any, cast

from bringup.smi import SmiGpu, parse_smi


def gpu(**values: Any) -> SmiGpu:
    """A sound GPU of which the driver says all that matters, but for these values."""
    (empty,) = parse_smi("<nvidia_smi_log><gpu/></nvidia_smi_log>")["gpus"]
    sound = {"name": "NVIDIA H200", "link_width": 16, "link_width_max": 16, "event_reasons": []}
    return cast(SmiGpu, {**empty, **sound, **values})
