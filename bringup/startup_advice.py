"""Which stage of a start takes the most, and what is known to help. Times are of one start, in ms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bringup.report import Check
from bringup.smi import SmiGpu
from bringup.startup import WAYS, Sample

SLOW_INIT_MS = 5000.0  # 105 ms on one H200 with persistence; cold drivers take seconds a GPU
JIT_MS = 10_000.0  # a first kernel takes 0.1 s where its machine code is in the image, minutes where it is compiled
SAME = 0.05  # a share of a start below which two ways are equally quick
MAX_UNATTRIBUTED = 0.05  # of the whole (design §6)
CURES = {
    "create": "Docker's disk is slow, or its daemon busy",
    "start": "devices and libraries are injected here: an up-to-date CDI spec is faster than the nvidia runtime",
    "interpreter": "the image's Python starts from a slow disk",
    "import_torch": "compile the image's .pyc files (gpu_image_prewarm), which a container's own start cannot keep",
    "dlopen_libcuda": "the driver's library comes from a slow disk",
    "cu_init": "keep the driver loaded with nvidia-persistenced, and show a container only the GPUs that it needs",
    "is_available": "PYTORCH_NVML_BASED_CUDA_CHECK=1 asks without starting CUDA; fewer visible GPUs are faster, too",
    "context": "CUDA_MODULE_LOADING=LAZY (the default since CUDA 12.2), and persistence",
    "first_kernel": "an image with machine code for this GPU, or a kept ~/.nv/ComputeCache",
    "other_gpus": "show a container only the GPUs that it needs",
    "exit": "persistence: without it the last program's end takes the driver's state down",
}


def advice(sample: Sample, gpus: Sequence[SmiGpu]) -> Check | None:
    """None where nothing was measured. What a clock that jumped has measured is nothing, and is said."""
    if sample["failed"] or not sample["stages_ms"]:
        return None
    if sample["void"]:
        return Check("startup", "skipped", f"its times mean nothing: {sample['void']}")
    stages, total = sample["stages_ms"], sample["total_ms"]
    longest = max(stages, key=lambda name: stages[name])
    said = f"{longest} takes {stages[longest]:.0f} of {total:.0f} ms: {CURES.get(longest, 'no cure is known')}"
    off = any(each["persistence"] == "Disabled" for each in gpus)
    unattributed = sample["unattributed_ms"]
    if stages.get("cu_init", 0.0) > SLOW_INIT_MS:
        why = "persistence is off" if off else "persistence is on, so look at the kernel log and the number of GPUs"
        return Check("startup", "warn", f"cu_init takes {stages['cu_init']:.0f} ms and {why}; {said}")
    if stages.get("first_kernel", 0.0) > JIT_MS:
        how = "compiled at each start, since the image has no machine code for this GPU"
        return Check(
            "startup", "warn", f"the first kernel takes {stages['first_kernel']:.0f} ms: it is {how}; take another image"
        )
    if unattributed is None or unattributed > MAX_UNATTRIBUTED * total:
        return Check("startup", "warn", f"{unattributed} ms of {total:.0f} belong to no stage; {said}")
    return Check("startup", "pass", said)


def compared(totals_ms: Mapping[str, float | None]) -> list[str]:
    """What the ways of injection cost each other, a sentence each. `totals_ms`: by startup.WAYS, the median of a whole start or None."""
    said = []
    cdi, runtime, bare = (totals_ms.get(way) for way in WAYS)
    if cdi is not None and runtime is not None:
        slower, faster = ("the nvidia runtime", "CDI") if runtime > cdi else ("CDI", "the nvidia runtime")
        advice = ": gpu_injection cdi is the quicker way" if runtime > cdi * (1 + SAME) else ""
        said.append(f"{slower} starts {abs(runtime - cdi):.0f} ms slower than {faster}{advice}")
    best = min((each for each in (cdi, runtime) if each is not None), default=None)
    if best is not None and bare is not None:
        said.append(f"a container costs {best - bare:.0f} ms beside the same program without one")
    return said + [f"{way} was not measured" for way in WAYS if totals_ms.get(way) is None]
