"""From the interpreter's first line to a right result from a CUDA kernel on every GPU, with a time stamp after each stage.

Prints one line of JSON; stops at the first stage that fails and says which. Runs under Python 3.8 and newer.
"""

import time

FIRST = time.time_ns()
FIRST_MONOTONIC = time.monotonic_ns()

import ctypes
import json
import sys

N = 1024
report = {"stamps": [["interpreter", FIRST]], "failed": None, "gpus": []}


def stage(name):
    report["stamps"].append([name, time.time_ns()])


def check(returned, what):
    if returned != 0:
        raise RuntimeError("%s returned %d" % (what, returned))


def kernel(torch, index):
    """A result that only a kernel can have made; exact in float32."""
    numbers = torch.arange(N, device="cuda:%d" % index, dtype=torch.float32)
    got = (numbers * 2).sum().item()
    if got != N * (N - 1):  # a NaN is no equal either
        raise RuntimeError("the kernel on GPU %d gave %r instead of %d" % (index, got, N * (N - 1)))


current = "import_torch"
try:
    import torch

    stage(current)
    report["torch"], report["torch_cuda"] = torch.__version__, torch.version.cuda
    current = "dlopen_libcuda"
    libcuda = ctypes.CDLL("libcuda.so.1")
    stage(current)
    current = "cu_init"
    check(libcuda.cuInit(0), "cuInit")
    stage(current)
    current = "is_available"
    if not torch.cuda.is_available():
        raise RuntimeError("torch.cuda.is_available() is False")
    stage(current)
    current = "context"
    context = ctypes.c_void_p()
    check(libcuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    torch.cuda.init()
    stage(current)
    current = "first_kernel"
    kernel(torch, 0)
    stage(current)
    current = "other_gpus"
    report["gpus"] = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    for index in range(1, torch.cuda.device_count()):
        kernel(torch, index)
    stage(current)
except Exception as error:
    report["failed"] = {"stage": current, "error": "%s: %s" % (type(error).__name__, error)}

report["clock_drift_ns"] = (time.time_ns() - FIRST) - (time.monotonic_ns() - FIRST_MONOTONIC)
report["stamps"].append(["end", time.time_ns()])
print("\n" + json.dumps(report))
sys.stdout.flush()
