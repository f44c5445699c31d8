"""The measurements of one GPU, each with its result checked. A part of gpu_benchmark: it travels with it, under the name of this file.

Numbers are medians: matmul in TFLOP/s, copies in GB/s (10^9; a copy within the device counts read and write), launches in us.
"""

import math
import statistics
import time

from gpu_nvml import pci_address

N = 8192  # side of the matrices that are timed
N_CHECKED = 4096  # of those whose product is held against the CPU: enough tiles for every multiprocessor
SLICE_S = 0.25  # how long a measurement may go on
MIN_REPEATS, MAX_REPEATS = 5, 50
BUSY_S = 0.1  # work that is queued before the driver is asked how it does under load
IN_USE_BYTES = 2 << 30  # a context of our own and what the driver keeps stay below
LAUNCHES = 1000


def median_s(torch, work, while_running=None):
    """Seconds that one call of `work` takes on the current GPU, by its own events. Then it is kept busy while `while_running` looks."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    took, until = [], time.monotonic() + SLICE_S
    while len(took) < MAX_REPEATS and (len(took) < MIN_REPEATS or time.monotonic() < until):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        took.append(begin.elapsed_time(end) / 1000)
        if took[-1] > SLICE_S and len(took) >= 2:
            break  # a slow board: two are enough
    median = statistics.median(took)
    if while_running:
        for _ in range(min(int(BUSY_S / median) + 1, 1000)):
            work()
        while_running()
        torch.cuda.synchronize()
    return median


class Gpu:
    """The measurements of one GPU. Each metric is a number, or has its reason in `not_measured`."""

    def __init__(self, torch, index, nvml):
        self.torch, self.index, self.nvml = torch, index, nvml
        properties = torch.cuda.get_device_properties(index)
        self.capability = (properties.major, properties.minor)
        self.report = {
            "index": index,
            "name": properties.name,
            "pci_address": pci_address(index),
            "skipped": None,
            "alone": {},
            "parallel": {},
            "not_measured": {},
            "checks": {},  # name -> None when right, else what was wrong
            "under_load": {},
        }

    def in_use(self):
        free, total = self.torch.cuda.mem_get_info(self.index)
        if total - free > IN_USE_BYTES:
            return "in use: %d MiB of its memory are taken" % ((total - free) >> 20)
        return None

    def look(self, when):
        self.report["under_load"][when] = self.nvml.look(self.report["pci_address"])

    def judge(self, name, wrong):
        """What was wrong once stays so."""
        self.report["checks"][name] = self.report["checks"].get(name) or wrong

    def measure(self, where, name, function):
        """A metric that cannot be measured ends no other one; a number that is none is not taken."""
        try:
            value = function()
        except Exception as error:
            self.report["not_measured"][name] = "%s: %s" % (type(error).__name__, error)
            return
        if value is None:
            return
        if not math.isfinite(value) or value <= 0:
            self.report["not_measured"][name] = "%r is no result" % value
            return
        self.report[where][name] = round(value, 3)

    def matmul(self, kind):
        torch = self.torch
        if kind in ("bf16", "tf32") and self.capability < (8, 0):
            self.report["not_measured"]["matmul_" + kind] = "this GPU has no %s (compute capability %d.%d)" % (
                (kind, *self.capability)
            )
            return None
        dtype = torch.bfloat16 if kind == "bf16" else torch.float32
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        a, b = (torch.randn(N, N, device=self.device(), dtype=dtype) for _ in range(2))
        out, first = torch.empty_like(a), torch.matmul(a, b)
        seconds = median_s(torch, lambda: torch.matmul(a, b, out=out), lambda: self.look("matmul_" + kind))
        wrong = None
        if not bool(torch.isfinite(out).all()):
            wrong = "the product has values that are no numbers"
        elif not torch.equal(out, first):
            wrong = "the same product came out twice as something else"
        self.judge("matmul_%s_repeats" % kind, wrong)
        return 2 * N**3 / seconds / 1e12

    def check_products(self):
        """Whole numbers small enough that every sum is exact: each kind must give what the CPU gives (held against one vector)."""
        torch = self.torch
        a, b = (torch.randint(-1, 2, (N_CHECKED, N_CHECKED), device=self.device(), dtype=torch.float32) for _ in range(2))
        vector = torch.randint(-1, 2, (N_CHECKED,)).double()
        expected = a.cpu().double() @ (b.cpu().double() @ vector)
        torch.backends.cuda.matmul.allow_tf32 = False
        exact = a @ b
        right = torch.equal(exact.cpu().double() @ vector, expected)
        self.judge("matmul_fp32", None if right else "the product is not the CPU's")
        if self.capability < (8, 0):
            return
        torch.backends.cuda.matmul.allow_tf32 = True
        self.judge("matmul_tf32", None if torch.equal(a @ b, exact) else "the product is not the one in fp32")
        # sums in bf16 would be off by more than one rounding
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        rounded = (a.bfloat16() @ b.bfloat16()).float()
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True  # torch's default: it is timed
        off = ((rounded - exact).abs() <= exact.abs() / 128).logical_not().sum().item()  # bf16 holds 8 bits; a NaN is off, too
        self.judge("matmul_bf16", None if off == 0 else "%d of %d values are wrong" % (off, N_CHECKED**2))

    def device_copy(self):
        size = min(2 << 30, self.torch.cuda.mem_get_info(self.index)[0] // 4)
        source, target = self.pattern(size), self.torch.zeros(size // 8, device=self.device(), dtype=self.torch.int64)
        seconds = median_s(self.torch, lambda: target.copy_(source))
        self.judge("device_copy", None if self.torch.equal(source, target) else "the copy differs")
        return 2 * size / seconds / 1e9

    def host_copy(self, to_device, pinned):
        torch, size = self.torch, 256 << 20
        name = "%s_%s" % ("h2d" if to_device else "d2h", "pinned" if pinned else "pageable")
        on_host = torch.arange(size // 8, dtype=torch.int64)
        on_host = on_host.pin_memory() if pinned else on_host
        on_device = self.pattern(size)
        if to_device:
            on_device.zero_()
            seconds = median_s(torch, lambda: on_device.copy_(on_host, non_blocking=pinned), lambda: self.look(name))
        else:
            on_host.zero_()
            seconds = median_s(torch, lambda: on_host.copy_(on_device, non_blocking=pinned), lambda: self.look(name))
        torch.cuda.synchronize()
        right = torch.equal(on_device, self.pattern(size)) and torch.equal(on_host, torch.arange(size // 8, dtype=torch.int64))
        self.judge(name, None if right else "what arrived is not what was sent")
        return size / seconds / 1e9

    def launch_eager(self):
        torch = self.torch
        one, took = torch.zeros(1, device=self.device()), []
        for _ in range(5):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(LAUNCHES):
                one.add_(1)
            torch.cuda.synchronize()
            took.append((time.perf_counter() - begin) / LAUNCHES * 1e6)
        right = one.item() == 5 * LAUNCHES
        self.judge("launch_eager", None if right else "%d additions gave %r" % (5 * LAUNCHES, one.item()))
        return statistics.median(took)

    def launch_graph(self):
        torch = self.torch
        one, graph = torch.zeros(1, device=self.device()), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                one.add_(1)
        replayed = []

        def replay():
            replayed.append(1)
            graph.replay()

        seconds = median_s(torch, replay)
        wanted = len(replayed) * LAUNCHES  # capturing runs nothing
        self.judge("launch_graph", None if one.item() == wanted else "%d additions gave %r" % (wanted, one.item()))
        return seconds / LAUNCHES * 1e6

    def device(self):
        return "cuda:%d" % self.index

    def pattern(self, size):
        return self.torch.arange(size // 8, device=self.device(), dtype=self.torch.int64)

    def all_alone(self):
        self.torch.cuda.set_device(self.index)
        try:
            self.check_products()
        except Exception as error:
            self.judge("products", "%s: %s" % (type(error).__name__, error))
        for kind in ("bf16", "tf32", "fp32"):
            self.measure("alone", "matmul_" + kind, lambda kind=kind: self.matmul(kind))
        self.measure("alone", "device_copy", self.device_copy)
        for to_device in (True, False):
            for pinned in (True, False):
                name = "%s_%s" % ("h2d" if to_device else "d2h", "pinned" if pinned else "pageable")
                self.measure("alone", name, lambda to=to_device, pin=pinned: self.host_copy(to, pin))
        self.measure("alone", "launch_eager", self.launch_eager)
        self.measure("alone", "launch_graph", self.launch_graph)
        self.torch.cuda.empty_cache()
