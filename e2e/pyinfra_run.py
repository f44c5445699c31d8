"""Running pyinfra as people run it: a process of its own, with a deadline; how it went is read from the result files it wrote."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import expect
from .expect import Failed

CHECKOUT = Path(__file__).parent.parent
LAB_INVENTORY = "inventories/lab.py"
Result = dict[str, Any]
"""One host's result, as reports/<time>/<host>.json has it."""


def program(name: str) -> str:
    """A program of this virtual environment: pyinfra, pytest."""
    return str(Path(sys.executable).with_name(name))


@dataclass(frozen=True)
class Run:
    """A run of pyinfra that has ended."""

    command: str
    exit_code: int
    seconds: float
    log: Path
    """All that it printed; what went to standard output alone is beside it, in `.stdout`."""
    reports: Path

    @property
    def output(self) -> str:
        """What a person would have seen."""
        return self.log.read_text(errors="replace")

    @property
    def results(self) -> dict[str, Result]:
        """Each host's result by its name; {} when the run wrote none."""
        found = [json.loads(path.read_text()) for path in sorted(self.reports.glob("*Z/*.json"))]
        return {each["host"]: each for each in found}

    def result(self, host: str) -> Result:
        """The result of one host. Raises Failed when the run wrote none."""
        results = self.results
        expect.true(host in results, f"a result file of {host}", f"results of {', '.join(results) or 'no host'}", self.log)
        return results[host]

    def expect_exit(self, code: int) -> Run:
        expect.equal(f"the exit code of `{self.command}`", self.exit_code, code, self.log)
        return self

    def expect_proven(self, *hosts: str) -> Run:
        """Every one of these hosts is counted, and proven on simulated hardware."""
        for host in hosts:
            result = self.result(host)
            ended = (result["ended"], result["function"], result["hardware"])
            found = "; ".join([" / ".join(ended), *result["problems"]])
            expect.true(ended == ("done", "proven", "simulated"), f"{host} to end done / proven / simulated", found, self.log)
        return self

    def expect_problem(self, host: str, ended: str, *words: str) -> Result:
        """The host ended so, and its first problem, which is one sentence, names all these words."""
        result = self.result(host)
        problems = result["problems"]
        expect.equal(f"how the run ended for {host} ({'; '.join(problems)})", result["ended"], ended, self.log)
        expect.true(problems, f"a problem in {host}'s result", "none", self.log)
        expect.contains(f"the problem of {host}", " | ".join(problems), *words, where=self.log)
        expect.true(len(problems[0].splitlines()) == 1, f"one line as the problem of {host}", repr(problems[0]), self.log)
        return result


class Started:
    """A run of pyinfra that goes on meanwhile."""

    def __init__(
        self, arguments: Sequence[str], log: Path, cwd: Path = CHECKOUT, environment: Mapping[str, str] | None = None
    ) -> None:
        """log: where its output goes; its reports go beside it."""
        self.log = log
        self.reports = log.with_suffix("")
        deploys = any(each.endswith(".py") and "deploys/" in each for each in arguments)
        reports = ["--data", f"gpu_reports={self.reports}"] if deploys else []
        self.command = shlex.join(["pyinfra", *arguments])
        self._began = time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        self._stdout = log.with_suffix(".stdout")
        # standard output holds what programs read (--json); people see both
        with log.open("wb") as errors, self._stdout.open("wb") as output:
            self.process = subprocess.Popen(
                [program("pyinfra"), *reports, *arguments],
                cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
                env={**os.environ, "PYINFRA_PROGRESS": "off", "PYTHONUNBUFFERED": "1", **(environment or {})},
            )  # fmt: skip

    def printed(self) -> str:
        """All that it has printed until now."""
        return self.log.read_text(errors="replace") + self._stdout.read_text(errors="replace")

    def is_running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """Ends it as the kernel would, with nothing tidied up."""
        if self.is_running():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)

    def wait(self, timeout_s: float) -> Run:
        """The run when it has ended. Raises Failed when it does not end in time, or ended with a traceback."""
        try:
            code = self.process.wait(timeout=max(0.0, timeout_s - (time.monotonic() - self._began)))
        except subprocess.TimeoutExpired:
            self.kill()
            last = next((line for line in reversed(self.printed().splitlines()) if line.strip()), "nothing")
            raise Failed(
                f"`{self.command}` to end within {timeout_s:.0f} s", f"that it went on; it printed last: {last}", self.log
            ) from None
        except BaseException:  # interrupted
            self.kill()
            raise
        seconds = time.monotonic() - self._began
        with self.log.open("a") as log:
            log.write(f"\n$ {self.command}\nexit {code} after {seconds:.1f} s\n\n{self._stdout.read_text(errors='replace')}")
        done = Run(self.command, code, seconds, self.log, self.reports)
        lines = done.output.splitlines()
        found = [line for line in lines if "Traceback (most recent call last)" in line or "internal error" in line.lower()]
        expect.nothing("traceback and no internal error in what a run prints", found, self.log)
        return done


def stdout_of(run: Run) -> str:
    """What the run printed for programs."""
    return run.log.with_suffix(".stdout").read_text()
