"""`python -m benchmarks [NAME…]`: each measured value beside its target."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.docker import docker
from benchmarks.doctor import doctor
from benchmarks.driver import driver
from benchmarks.help import help_
from benchmarks.images import images
from benchmarks.measured import Measured
from benchmarks.plan import plan
from benchmarks.proof import proof
from benchmarks.reports import reports
from benchmarks.survey import survey

BENCHMARKS: Mapping[str, Callable[[], Iterator[Measured]]] = {
    "survey": survey,
    "plan": plan,
    "help": help_,
    "driver": driver,
    "docker": docker,
    "images": images,
    "doctor": doctor,
    "reports": reports,
    "proof": proof,
}
SCHEMA = 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measured values beside their targets; nothing is asserted."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to a file as well")
    arguments = parser.parse_args(argv)
    unknown = [each for each in arguments.names if each not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}: {', '.join(BENCHMARKS)}")
    results: list[dict[str, object]] = []
    for name in arguments.names or BENCHMARKS:
        for measured in BENCHMARKS[name]():
            print(measured.line, flush=True)
            results.append({"benchmark": name, **asdict(measured), "ratio": measured.ratio})
    if arguments.json:
        machine = {
            "cores": os.cpu_count(),
            "arch": platform.machine(),
            "python": platform.python_version(),
            "load": os.getloadavg()[0],
        }
        time = datetime.now(tz=UTC).isoformat(timespec="seconds")
        text = json.dumps({"schema": SCHEMA, "time": time, "machine": machine, "results": results}, indent=2)
        try:
            arguments.json.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            print(f"benchmarks: {arguments.json} could not be written ({error.strerror})", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
