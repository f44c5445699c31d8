from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from typing_extensions import override

from e2e import expect
from e2e.lab.network import this_network
from e2e.lab.paths import STATE
from e2e.lab.snapshot import differences
from e2e.pyinfra_run import CHECKOUT
from e2e.scenario import Scenario

_SNAPSHOT = "import json; from e2e.lab.snapshot import machine_snapshot; print(json.dumps(machine_snapshot()))"


class LabCleanup(Scenario):
    """`down` leaves the machine as it was, also after `up` was killed; what `up` cannot do it says in a sentence."""

    state: Path
    before: dict[str, list[str]]

    @override
    def create(self) -> None:
        """A lab of its own: the scenarios' shared one is left alone."""
        self.state = STATE.with_name(f"{STATE.name}-cleanup")
        self._e2e("down")
        self.before = self._snapshot()

    @override
    def verify(self) -> None:
        with self.case("after up and down the machine is as before"):
            expect.equal("the exit code of up", self._e2e("up")[0], 0)
            code, said = self._e2e("up")
            expect.equal("the exit code of a second up", code, 1)
            expect.contains("what a second up says", said, "up already", "python -m e2e down")
            self._down()
        for begun in ("made.json", "known_hosts", "hosts/lab-1/console.log"):
            with self.case(f"after up was killed when it had made {begun}, and down, the machine is as before"):
                self._kill_up_after(self.state / begun)
                self._down()
        with self.case("bad input"):
            for arguments, words in (
                (("--gpu", "h2000"), ("h2000", "h200x8")),
                (("--distro", "debian11"), ("debian11", "debian12")),
            ):
                code, said = self._e2e("up", *arguments)
                expect.equal(f"the exit code of up {' '.join(arguments)}", code, 1)
                expect.contains(f"what up {' '.join(arguments)} says", said, *words)
            self._as_before()

    @override
    def destroy(self) -> None:
        self._e2e("down")

    def _kill_up_after(self, path: Path) -> None:
        up = subprocess.Popen(
            [sys.executable, "-m", "e2e", "up"],
            cwd=CHECKOUT,
            env=self._environment(),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            expect.wait_until(f"up to make {path}", path.exists, 60, interval_s=0.002)
        finally:
            up.send_signal(signal.SIGKILL)
            up.wait(timeout=10)
        expect.true(not (self.state / "lab.json").exists(), "up to be killed in the middle", "that the lab was complete")

    def _down(self) -> None:
        expect.equal("the exit code of down", self._e2e("down")[0], 0)
        self._as_before()

    def _as_before(self) -> None:
        expect.nothing("difference to the machine before", differences(self.before, self._snapshot()))

    def _environment(self) -> dict[str, str]:
        number = (this_network().number + 100) % 256
        return {**os.environ, "GPU_BRINGUP_LAB": str(self.state), "GPU_BRINGUP_LAB_NET": str(number)}

    def _e2e(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and all that it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "e2e", *arguments],
            cwd=CHECKOUT,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=300,
        )
        expect.nothing("traceback", (line for line in done.stderr.splitlines() if "Traceback" in line))
        return done.returncode, done.stdout + done.stderr

    def _snapshot(self) -> dict[str, list[str]]:
        done = subprocess.run(
            [sys.executable, "-c", _SNAPSHOT], cwd=CHECKOUT, env=self._environment(), capture_output=True, text=True, timeout=60
        )
        expect.equal("the exit code of machine_snapshot", done.returncode, 0, done.stderr[-300:])
        found: dict[str, list[str]] = json.loads(done.stdout)
        return found
