from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from typing_extensions import override

from e2e import expect
from e2e.host_state import changes, host_state
from e2e.pyinfra_run import CHECKOUT, Run, stdout_of
from e2e.scenario import VERIFY, Scenario
from e2e.scenarios.doctor.sabotages import ROUNDS, SECRETS, Sabotage

DOCTOR = "deploys/doctor.py"
SUDO_LINES = "journalctl --no-pager -q _COMM=sudo | grep -c 'COMMAND=' || :"
HEALTHY = "no cause of trouble that is known"


class Doctor(Scenario):
    """deploys/doctor.py: no cause on converged hosts, a sabotage's cause first, the kept bundle says the same; no secret in it."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def converge(self) -> None:
        """Converged hosts: no cause, nothing changed, one exchange."""
        with self.case("converged hosts: no cause, nothing changed, one exchange with each"):
            before = {host.name: host_state(host) for host in self.lab.hosts}
            count = self._sudo_lines()
            run = self._examine("converged")
            # one more is this question itself
            expect.equal("exchanges with lab-1", self._sudo_lines() - count - 1, 1, run.log)
            for host in self.lab.hosts:
                expect.contains(f"what is said of {host.name}", self._said(run, host.name), HEALTHY, where=run.log)
                expect.equal(f"causes in the bundle of {host.name}", self._of_bundle(run, host.name)["causes"], [], run.log)
                expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)

    @override
    def side_effect(self) -> None:
        """Each breakage, and back; then secrets where people leave them."""
        for number, breakages in enumerate(ROUNDS, 1):
            with self.case(" + ".join(each.title for each in breakages)):
                self._round(number, breakages)
        with self.case("secrets are in no bundle and in nothing that is printed"):
            for each in SECRETS:
                self.host("lab-1").run(each, sudo=True)
            run = self._examine("secrets")
            bundle = self._bundle(run, "lab-1").read_text()
            expect.true("***" in bundle, "masks in the bundle", "none", run.log)
            found = [line for line in (bundle + run.output).splitlines() if "CANARY" in line]
            expect.nothing("secret", found, run.log)

    @override
    def verify(self) -> None:
        """A failed check shows its cause and the remedy: in the summary, in the host's result and on the fleet's page."""
        with self.case("a failed run names the cause of what failed, with the remedy"):
            self.host("lab-1").run("mv /usr/bin/nvidia-container-runtime /root/", sudo=True)
            run = self.deploy("verify", VERIFY, timeout_s=150).expect_exit(1)
            self.host("lab-1").run("mv /root/nvidia-container-runtime /usr/bin/", sudo=True)
            notes = "\n".join(run.result("lab-1")["notes"])
            words = ("likely cause (runtime-binary-missing)", "install the toolkit")
            expect.contains("notes of lab-1", notes, *words, where=run.log)
            expect.contains("what a person reads", run.output, *words, where=run.log)
            page = (run.reports / "latest" / "index.html").read_text()
            expect.contains("the fleet's page", page, "runtime-binary-missing", where=run.log)

    def _round(self, number: int, breakages: tuple[Sabotage, ...]) -> None:
        for each in breakages:
            self.host(each.host).run(each.command, sudo=True)
        run = self._examine(f"sabotage {number}")
        for each in breakages:
            self.host(each.host).run(each.back, sudo=True)
        for each in breakages:
            value = self._of_bundle(run, each.host)
            ids = [cause["id"] for cause in value["causes"]]
            expect.equal(f"the first cause on {each.host} after: {each.title}", ids[:1], [each.cause], run.log)
            expect.true(value["causes"][0]["confidence"] != "low", "some confidence in it", "low", run.log)
            expect.contains("what a person reads", self._said(run, each.host), f"1. {value['causes'][0]['title']}", where=run.log)

    def _examine(self, what: str) -> Run:
        return self.deploy(f"doctor {what}", DOCTOR, timeout_s=120).expect_exit(0)

    def _said(self, run: Run, host: str) -> str:
        """What was printed of one host: from its name to the next one's."""
        found: list[str] = []
        inside = False
        for line in stdout_of(run).splitlines():
            if not line.startswith(" "):
                inside = line.startswith(f"{host} ")
            if inside:
                found.append(line)
        expect.true(found, f"something said of {host}", "nothing", run.log)
        return "\n".join(found)

    def _bundle(self, run: Run, host: str) -> Path:
        return run.reports / "evidence" / f"{host}.json"

    def _of_bundle(self, run: Run, host: str) -> dict[str, Any]:
        """What `bringup doctor` says of the kept bundle."""
        done = subprocess.run(
            [sys.executable, "-m", "bringup", "doctor", "--json", str(self._bundle(run, host))],
            cwd=CHECKOUT, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        expect.equal("the exit code of bringup doctor", done.returncode, 0, run.log)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _sudo_lines(self) -> int:
        """How often sudo ran something on lab-1: every exchange of pyinfra's with it does."""
        return int(self.host("lab-1").run(SUDO_LINES, sudo=True).stdout.strip())
