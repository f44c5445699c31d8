"""How fast each GPU is, alone and with all others at work, and whether what it computes is right.

Prints one line of JSON. Needs torch and nothing else, runs under Python 3.8 and newer, and ends in seconds. A GPU whose memory somebody
uses is left alone. One argument, optional: seconds of sustained load on all GPUs at once.

Numbers are medians: matmul in TFLOP/s, copies in GB/s (10^9; a copy within the device counts read and write), launches in us.
"""

import ctypes
import json
import math
import statistics
import sys
import threading
import time

N = 8192  # side of the matrices that are timed
N_CHECKED = 4096  # of those whose product is held against the CPU: enough tiles for every multiprocessor
SLICE_S = 0.25  # how long a measurement may go on
MIN_REPEATS, MAX_REPEATS = 5, 50
BUSY_S = 0.1  # work that is queued before the driver is asked how it does under load
IN_USE_BYTES = 2 << 30  # a context of our own and what the driver keeps stay below
LAUNCHES = 1000


class Nvml:
    """What the driver says while a GPU works; None where it does not say. Never in the way of a measurement."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            self.library.nvmlInit_v2()
        except (OSError, AttributeError):
            self.library = None

    def look(self, pci_address):
        found = {}
        handle = ctypes.c_void_p()
        try:
            if self.library.nvmlDeviceGetHandleByPciBusId_v2((pci_address or "").encode(), ctypes.byref(handle)) != 0:
                return found
        except AttributeError:
            return found
        for key, function, arguments, kind in (
            ("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration", (), ctypes.c_uint),
            ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth", (), ctypes.c_uint),
            ("sm_clock_mhz", "nvmlDeviceGetClockInfo", (1,), ctypes.c_uint),
            ("temperature_c", "nvmlDeviceGetTemperature", (0,), ctypes.c_uint),
            ("power_mw", "nvmlDeviceGetPowerUsage", (), ctypes.c_uint),
            ("event_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", (), ctypes.c_ulonglong),
        ):
            value = kind()
            try:
                if getattr(self.library, function)(handle, *arguments, ctypes.byref(value)) == 0:
                    found[key] = value.value
            except AttributeError:  # a library that does not know this one yet
                continue
        return found


def pci_address(index):
    """0000:00:06.0, of the driver's device of that number."""
    text = ctypes.create_string_buffer(32)
    try:
        if ctypes.CDLL("libcuda.so.1").cuDeviceGetPCIBusId(text, len(text), index) == 0:
            return text.value.decode().lower()
    except (OSError, AttributeError):
        pass
    return None


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
