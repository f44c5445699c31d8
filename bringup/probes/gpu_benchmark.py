"""How fast each GPU is, alone and with all others at work, and whether what it computes is right.

Prints one line of JSON. Needs torch and nothing else, runs under Python 3.8 and newer, and ends in seconds. A GPU whose memory somebody
uses is left alone. One argument, optional: seconds of sustained load on all GPUs at once. Its parts travel with it (PARTS).
"""

import json
import statistics
import sys
import threading
import time

from gpu_metrics import Gpu, N
from gpu_nvml import Nvml


def in_parallel(gpus):
    """The same metric on all GPUs at once, one after the other: shared power, air and PCIe switches show here."""
    barrier = threading.Barrier(len(gpus))

    def work(gpu):
        gpu.torch.cuda.set_device(gpu.index)
        for name, function in (
            ("matmul_bf16", lambda: gpu.matmul("bf16")),
            ("h2d_pinned", lambda: gpu.host_copy(True, True)),
            ("d2h_pinned", lambda: gpu.host_copy(False, True)),
        ):
            barrier.wait(60)
            gpu.measure("parallel", name, function)

    threads = [threading.Thread(target=work, args=(gpu,)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sustained(gpus, seconds):
    """Matmul without a pause on all GPUs: TFLOP/s of the first and the last second, and what the driver said at the end."""

    def work(gpu):
        torch = gpu.torch
        torch.cuda.set_device(gpu.index)
        half = gpu.capability >= (8, 0)
        a = torch.randn(N, N, device=gpu.device(), dtype=torch.bfloat16 if half else torch.float32)
        speeds, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            begin, done = time.monotonic(), 0
            while time.monotonic() - begin < 1:
                out = torch.matmul(a, a)
                torch.cuda.synchronize()
                done += 1
            speeds.append(done * 2 * N**3 / (time.monotonic() - begin) / 1e12)
        gpu.look("sustained")
        gpu.report["sustained"] = {"first": round(speeds[0], 3), "last": round(speeds[-1], 3), "seconds": seconds}
        right = bool(torch.isfinite(out).all()) and torch.equal(out, torch.matmul(a, a))
        gpu.judge("sustained", None if right else "the same product came out as something else under load")

    threads = [threading.Thread(target=work, args=(gpu,)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def peer(torch, source, target):
    """One direction between two GPUs, 1 GiB a copy."""
    found = {"from": source, "to": target, "access": None, "gb_per_s": None, "wrong": None}
    try:
        found["access"] = torch.cuda.can_device_access_peer(source, target)
        sent = torch.arange(1 << 27, device="cuda:%d" % source, dtype=torch.int64)
        got = torch.zeros(1 << 27, device="cuda:%d" % target, dtype=torch.int64)
        took = []
        for _ in range(6):
            torch.cuda.synchronize(source)
            torch.cuda.synchronize(target)
            begin = time.perf_counter()
            got.copy_(sent)
            torch.cuda.synchronize(source)
            torch.cuda.synchronize(target)
            took.append(time.perf_counter() - begin)
        found["gb_per_s"] = round((1 << 30) / statistics.median(took[1:]) / 1e9, 3)
        if not torch.equal(got, torch.arange(1 << 27, device="cuda:%d" % target, dtype=torch.int64)):
            found["wrong"] = "what arrived is not what was sent"
    except Exception as error:
        found["wrong"] = "%s: %s" % (type(error).__name__, error)
    return found


def main():
    began = time.monotonic()
    report = {"gpus": [], "peers": [], "failed": None}
    try:
        import torch

        report["torch"], report["torch_cuda"] = torch.__version__, torch.version.cuda
        if not torch.cuda.is_available():
            raise RuntimeError("torch.cuda.is_available() is False")
        nvml = Nvml()
        gpus = [Gpu(torch, index, nvml) for index in range(torch.cuda.device_count())]
        report["gpus"] = [gpu.report for gpu in gpus]
        for gpu in gpus:
            gpu.report["skipped"] = gpu.in_use()
        free = [gpu for gpu in gpus if gpu.report["skipped"] is None]
        for gpu in free:
            gpu.all_alone()
        if len(free) > 1:
            report["peers"] = [peer(torch, a.index, b.index) for a in free for b in free if a is not b]
            torch.cuda.empty_cache()
            in_parallel(free)
        if len(sys.argv) > 1 and float(sys.argv[1]) > 0:
            sustained(free, float(sys.argv[1]))
    except Exception as error:
        report["failed"] = "%s: %s" % (type(error).__name__, error)
    report["seconds"] = round(time.monotonic() - began, 3)
    print("\n" + json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
