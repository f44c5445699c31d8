from __future__ import annotations

import json
import subprocess

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged, expect_no_changes, shown
from e2e.host_state import State, changes, host_state
from e2e.lab.snapshot import machine_snapshot
from e2e.pyinfra_run import CHECKOUT, LAB_INVENTORY, Run, program, stdout_of
from e2e.scenario import GPU_HOST, PLAN, Scenario

REPORT_KEYS = (
    "schema",
    "host",
    "run",
    "revision",
    "ended",
    "function",
    "performance",
    "hardware",
    "summary",
    "planned",
    "changed",
    "checks",
    "measured",
)
FIRST_STEPS = ("driver-repository", "driver-packages", "toolkit-packages", "docker-engine", "daemon-json", "images", "provenance")


class Default(Scenario):
    """Two fresh hosts become proven ones with one command; a dry run and a second run change nothing."""

    shown: dict[str, list[str]]
    first: Run
    second: Run
    sysctls: list[str]

    @override
    def create(self) -> None:
        super().create()
        # not before: the lab itself turns forwarding on, and `down` off again, which lab-cleanup checks
        self.sysctls = machine_snapshot()["sysctls"]

    @override
    def prepare(self) -> None:
        """--dry and plan.py: the plan with its reasons, and nothing changed."""
        before = self._states()
        run = self.pyinfra("dry", "-y", "--dry", LAB_INVENTORY, GPU_HOST, timeout_s=60).expect_exit(0)
        table = self.pyinfra("plan", "-v", LAB_INVENTORY, PLAN, timeout_s=60).expect_exit(0)
        after = self._states()
        self.shown = shown(run)
        expect.equal("the steps that plan.py shows, compared with those of --dry", shown(table), self.shown, table.log)
        for name in self.hosts:
            expect.contains(f"the dry run's plan for {name}", run.output, f"[{name}]", "because")
            expect.nothing(f"change on {name} by a dry run", changes(before[name], after[name]), run.log)
        expect.contains("the dry run", run.output, *FIRST_STEPS, "reboot (reboots)", where=run.log)
        expect.nothing("result file of a dry run", run.results, run.log)

    @override
    def converge(self) -> None:
        self.first = self.deploy("converge").expect_exit(0)
        expect.equal("the hosts with a result", sorted(self.first.results), self.hosts, self.first.log)
        expect_converged(self.first, self.hosts)
        for name in self.hosts:
            result = self.first.result(name)
            expect.nothing(f"missing key in {name}'s result", (key for key in REPORT_KEYS if key not in result), self.first.log)
            planned = [step["step"] for step in result["planned"]]
            expect.equal(f"the plan of {name}, compared with what --dry showed", planned, self.shown[name], self.first.log)
            expect.nothing(
                f"step without a reason in {name}'s plan", (step["step"] for step in result["planned"] if not step["why"])
            )
            expect.true(
                set(FIRST_STEPS) <= set(planned), f"{', '.join(FIRST_STEPS)} planned on a fresh {name}", planned, self.first.log
            )
            failed = [f"{check['name']}: {check['detail']}" for check in result["checks"] if check["status"] == "fail"]
            expect.nothing(f"failed check on {name}", failed)
        expect.equal("reboots (nouveau holds the GPU of lab-1 alone)", self._reboots(), {"lab-1": 1, "lab-2": 0}, self.first.log)
        expect.contains("the summary", self.first.output, "proven on a simulated GPU", where=self.first.log)

    @override
    def idempotence(self) -> None:
        before = self._states()
        self.second = expect_no_changes(self.deploy("idempotence"), self.hosts)
        after = self._states()
        for name in self.hosts:
            expect.nothing(f"change on {name} by a second run", changes(before[name], after[name]), self.second.log)
        ratio = self.second.seconds / self.first.seconds
        times = f"{self.second.seconds:.1f} s of {self.first.seconds:.1f} s"
        expect.true(ratio < 1 / 3, "the second run to take under a third of the first one's time", times, self.second.log)
        print(f"        first run {self.first.seconds:.1f} s, second {self.second.seconds:.1f} s ({ratio:.0%})", flush=True)
        self.labs.keep_converged()

    @override
    def verify(self) -> None:
        with self.case("tests/host passes"):
            self._host_tests()
        with self.case("facts.verification.CudaStartup asked alone"):
            self._startup()
        with self.case("facts.survey.HostSurvey asked alone"):
            self._survey()
        with self.case("sysctls of the machine are as before"):
            now = machine_snapshot()["sysctls"]
            expect.nothing("changed sysctl", sorted(set(now) ^ set(self.sysctls)))

    def _states(self) -> dict[str, State]:
        return {host.name: host_state(host) for host in self.lab.hosts}

    def _reboots(self) -> dict[str, int]:
        return {name: result["reboots"] for name, result in self.first.results.items()}

    def _host_tests(self) -> None:
        log = self.folder / "testinfra.log"
        done = subprocess.run(
            [program("pytest"), "tests/host", "--inventory", LAB_INVENTORY, "-vv", "--color=no"],
            cwd=CHECKOUT, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        log.write_text(done.stdout + done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        expect.equal(
            f"the exit code of pytest tests/host ({lines[-1] if lines else 'it printed nothing'})", done.returncode, 0, log
        )
        for name in self.hosts:
            passed = [line for line in lines if name in line and "PASSED" in line]
            expect.true(len(passed) >= 10, f"ten tests or more to have passed on {name}", len(passed), log)

    def _startup(self) -> None:
        run = self.pyinfra("fact CudaStartup", LAB_INVENTORY, "fact", "facts.verification.CudaStartup", "--json", timeout_s=120)
        run.expect_exit(0)
        (answers,) = json.loads(stdout_of(run)).values()
        for name, gpus in (("lab-1", 1), ("lab-2", 8)):
            found = answers[name]
            expect.true(found["problem"] is None, f"no problem in the CudaStartup of {name}", found["problem"], run.log)
            probe = found["samples"][0]["probe"]
            expect.equal(f"GPUs in the CudaStartup of {name}", len(probe["gpus"]), gpus, run.log)
            stages = found["stages_ms"]
            wanted = {"create", "start", "import_torch", "cu_init", "first_kernel"}
            expect.true(wanted <= set(stages), f"{name}'s stages to hold {', '.join(sorted(wanted))}", ", ".join(stages), run.log)

    def _survey(self) -> None:
        run = self.pyinfra("fact HostSurvey", LAB_INVENTORY, "fact", "facts.survey.HostSurvey", "--json", timeout_s=120)
        run.expect_exit(0)
        (answers,) = json.loads(stdout_of(run)).values()
        for name, release in (("lab-1", "12"), ("lab-2", "13")):
            expect.equal(f"the release in the HostSurvey of {name}", answers[name]["os"]["version_id"], release, run.log)
