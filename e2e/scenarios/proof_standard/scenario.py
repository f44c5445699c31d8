from __future__ import annotations

import json

from typing_extensions import override

from e2e import expect
from e2e.pyinfra_run import Run
from e2e.scenario import VERIFY, Scenario

KEPT = "/var/lib/gpu-bringup/proof.json"
# how systemd finds a device by its number when it applies a container's rules anew
LINKS = """for node in /dev/nvidia*; do
    [ -c "$node" ] && ln -sf "$node" "/dev/char/$(printf '%d:%d' "0x$(stat -c %t "$node")" "0x$(stat -c %T "$node")")"
done; true"""
XID = "NVRM: Xid (PCI:0000:19:00): 79, pid=4242, name=python3, GPU has fallen off the bus."
STANDARD = ("--data", "gpu_verify=standard")


class ProofStandard(Scenario):
    """gpu_verify=standard: daemon-reload between two kernels in one container, kept; what was not tried or is sick proves nothing."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def converge(self) -> None:
        with self.case("what was never tried on a host is not proven by verify"):
            run = self.deploy("verify before", VERIFY, *STANDARD).expect_exit(1)
            for name in self.hosts:
                run.expect_problem(name, "failed", "survival-daemon-reload", "not tried yet")
        with self.case(
            "a container that loses its GPU is not proven, with the cause: Docker 20.10 and the nvidia runtime, without links"
        ):
            run = self.deploy("standard", "deploys/gpu_host.py", *STANDARD).expect_exit(1).expect_proven("lab-2")
            run.expect_problem("lab-1", "failed", "survival-daemon-reload", "ran before, and not after", "/dev/char")
        with self.case("with links in /dev/char it keeps its GPU"):
            self.host("lab-1").run(LINKS, sudo=True)
            run = self.deploy("with links", "deploys/gpu_host.py", *STANDARD).expect_exit(0).expect_proven(*self.hosts)
            for name in self.hosts:
                self._expect(run, name, "survival-daemon-reload", "pass")
                self._expect(run, name, "speed", "skipped")
                expect.equal(f"performance of {name}", run.result(name)["performance"], "not measured", run.log)
                kept = json.loads(self.host(name).run(f"cat {KEPT}", sudo=True).stdout)
                expect.equal(f"what {name} kept", [each["after"] for each in kept["steps"]], ["start", "daemon-reload"], run.log)

    @override
    def verify(self) -> None:
        with self.case("a kept result that is broken, and an Xid of broken hardware, are named"):
            self.host("lab-1").run(f"printf '%s' '{{' >{KEPT}", sudo=True)
            self.host("lab-2").run(f"echo '{XID}' >>/run/simulated-gpu/kmsg", sudo=True)
            run = self.deploy("verify broken", VERIFY, *STANDARD).expect_exit(1)
            run.expect_problem("lab-1", "failed", "survival-daemon-reload", "is broken")
            run.expect_problem("lab-2", "failed", "Xid 79", "fallen off the bus", "power-cycle")

    def _expect(self, run: Run, name: str, check: str, status: str) -> None:
        found = {each["name"]: each["status"] for each in run.result(name)["checks"]}
        expect.equal(f"{check} of {name}", found.get(check), status, run.log)
