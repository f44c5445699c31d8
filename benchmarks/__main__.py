"""`python -m benchmarks [NAME…] [--quick]`: each measured value beside its target."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.docker import docker
from benchmarks.doctor import doctor
from benchmarks.driver import driver
from benchmarks.help import help_
from benchmarks.hosts import hosts
from benchmarks.images import images
from benchmarks.many import many
from benchmarks.measured import Measured
from benchmarks.plan import plan
from benchmarks.proof import proof
from benchmarks.reports import reports
from benchmarks.survey import survey

# those that take minutes have a smaller size for --quick
BENCHMARKS: Mapping[str, Callable[[bool], Iterator[Measured]]] = {
    "survey": lambda _: survey(),
    "plan": lambda _: plan(),
    "help": lambda _: help_(),
    "doctor": lambda _: doctor(),
    "reports": lambda _: reports(),
    "proof": lambda _: proof(),
    "docker": docker,
    "driver": driver,
    "images": images,
    "hosts": hosts,
    "many": many,
}
SCHEMA = 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measured values beside their targets; nothing is asserted."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs: all in under 15 minutes on 2 cores")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to a file as well")
    arguments = parser.parse_args(argv)
    names = list(BENCHMARKS) if "all" in arguments.names else arguments.names or list(BENCHMARKS)
    unknown = [each for each in names if each not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}: {', '.join(BENCHMARKS)}")
    results: list[dict[str, object]] = []
    began = time.monotonic()
    for name in names:
        print(f"{name}: after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        for measured in BENCHMARKS[name](arguments.quick):
            print(measured.line, flush=True)
            results.append({"benchmark": name, **asdict(measured), "ratio": measured.ratio})
    if arguments.json:
        machine = {
            "cores": os.cpu_count(),
            "arch": platform.machine(),
            "python": platform.python_version(),
            "load": os.getloadavg()[0],
        }
        now = datetime.now(tz=UTC).isoformat(timespec="seconds")
        text = json.dumps(
            {"schema": SCHEMA, "time": now, "quick": arguments.quick, "machine": machine, "results": results}, indent=2
        )
        try:
            arguments.json.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            print(f"benchmarks: {arguments.json} could not be written ({error.strerror})", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
