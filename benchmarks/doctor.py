"""What the doctor costs: the command on a kernel log of 20 MB."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured

MIB = 1 << 20
LINES = (
    "[{at:>6}.{low:06}] usb 1-{low}: new high-speed USB device number {low} using xhci_hcd",
    "[{at:>6}.{low:06}] NVRM: Xid (PCI:0000:61:00): 31, pid={low}, name=python, MMU Fault: ENGINE GRAPHICS at 0x{low:08x}",
    "[{at:>6}.{low:06}] audit: type=1400 audit({at}.{low}): apparmor=\"ALLOWED\" operation=\"open\" name=\"/proc/{low}/stat\"",
    "[{at:>6}.{low:06}] EXT4-fs error (device sda1): ext4_find_entry:{low}: inode #{at}: comm x: reading directory lblock 0",
)  # fmt: skip


def doctor() -> Iterator[Measured]:
    """The issue's targets: 2 s, 200 MB of memory."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.log"
        with file.open("w", encoding="utf-8") as log:
            at = 0
            while log.tell() < 20 * MIB:
                log.writelines(
                    LINES[each % 4].format(at=each // 9, low=each * 7919 % 999983) + "\n" for each in range(at, at + 10000)
                )
                at += 10000
            log.write("[999999.000001] NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus.\n")
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "bringup", "doctor", "--json", str(file)], capture_output=True, text=True, timeout=120
        )
        yield Measured("doctor: a kernel log of 20 MB", time.perf_counter() - began, "s", 2)
        yield Measured("doctor: its memory", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, "MiB", 200)
        yield Measured("doctor: found the one line that matters", float("gpu-fell-off-the-bus" in done.stdout), "")
