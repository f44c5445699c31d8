from __future__ import annotations

import json

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_no_changes
from e2e.pyinfra_run import Run
from e2e.scenario import VERIFY, Scenario
from e2e.shared_lab import wait_for_boot

KEPT = "/var/lib/gpu-bringup/proof.json"
# what keeps the links stopped, and the links gone
WITHOUT_LINKS = "systemctl stop gpu-bringup-device-links.path && find /dev/char -lname '*nvidia*' -delete"
# a device of which systemd finds no link of its own
UNLINKED = """for node in /dev/nvidia* /dev/nvidia-caps/*; do
    [ ! -c "$node" ] || [ "/dev/char/$(printf '%d:%d' "0x$(stat -c %t "$node")" "0x$(stat -c %T "$node")")" -ef "$node" ] || echo "$node"
done"""
# what the driver does when a MIG instance is made
MIG_INSTANCE = "mkdir -p /dev/nvidia-caps && mknod -m 444 /dev/nvidia-caps/nvidia-cap21 c 236 21"
XID = "NVRM: Xid (PCI:0000:19:00): 79, pid=4242, name=python3, GPU has fallen off the bus."
AUTO = ("--data", "gpu_verify=auto")
STANDARD = ("--data", "gpu_verify=standard")

# Docker 20.10 knows no CDI
WAYS = {
    "lab-1": ("`--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all`: 1 of 1 GPUs", "`--device nvidia.com/gpu=all`: none ("),
    "lab-2": ("`--device nvidia.com/gpu=all`: 8 of 8 GPUs", "`--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all`: 8 of 8 GPUs"),
}


class ProofStandard(Scenario):
    """gpu_verify=standard: daemon-reload between two kernels in one container, kept; what was not tried or is sick proves nothing."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def converge(self) -> None:
        with self.case("auto proves in full what was never proven so, notes it, and is quick from then on"):
            run = self.deploy("auto", VERIFY, "--limit", "lab-2", *AUTO).expect_exit(0).expect_proven("lab-2")
            expect.equal("what was changed on lab-2", run.result("lab-2")["changed"], ["survival", "proof-record"], run.log)
            self._expect(run, "lab-2", "survival-daemon-reload", "pass")
            again = self.deploy("auto again", VERIFY, "--limit", "lab-2", *AUTO).expect_exit(0).expect_proven("lab-2")
            expect.nothing("operation that changed lab-2 again", again.result("lab-2")["changed"], again.log)
            self._expect(again, "lab-2", "survival-daemon-reload", None)
        with self.case("a running container keeps its GPU over daemon-reload"):
            run = self.deploy("standard", "deploys/gpu_host.py", *STANDARD).expect_exit(0).expect_proven(*self.hosts)
            for name in self.hosts:
                self._expect(run, name, "survival-daemon-reload", "pass")
                self._expect(run, name, "speed", "skipped")
                self._expect(run, name, "docker-ways", "pass")
                expect.contains(f"the ways of {name}", run.output, *WAYS[name], where=run.log)
                expect.equal(f"performance of {name}", run.result(name)["performance"], "not measured", run.log)
                kept = json.loads(self.host(name).run(f"cat {KEPT}", sudo=True).stdout)
                expect.equal(f"what {name} kept", [each["after"] for each in kept["steps"]], ["start", "daemon-reload"], run.log)

    @override
    def idempotence(self) -> None:
        """Before the reboot: what was kept is of one boot."""
        expect_no_changes(self.deploy("again", "deploys/gpu_host.py", *STANDARD), self.hosts)

    @override
    def side_effect(self) -> None:
        one = self.host("lab-1")
        with self.case("Docker 20.10 and the nvidia runtime without links in /dev/char: the GPU is lost, and it is said why"):
            one.run(WITHOUT_LINKS, sudo=True)
            one.run(f"rm -f {KEPT}", sudo=True)
            run = self.deploy("verify without links", VERIFY, *STANDARD).expect_exit(1)
            run.expect_problem("lab-1", "failed", "survival-daemon-reload", "ran before, and not after", "/dev/char")
        with self.case("the next run makes the links anew, and the GPU is kept"):
            run = self.deploy("healed", "deploys/gpu_host.py", *STANDARD).expect_exit(0).expect_proven(*self.hosts)
            expect.contains("what was done on lab-1", " ".join(run.result("lab-1")["changed"]), "device-links", where=run.log)
            self._expect(run, "lab-1", "survival-daemon-reload", "pass")
        with self.case("the device of a new MIG instance is linked without a run"):
            one.run(MIG_INSTANCE, sudo=True)
            expect.wait_until("a link to the new device", lambda: not self._unlinked("lab-1"), 10)
        with self.case("after a reboot every device is linked"):
            one.reboot()
            wait_for_boot(one)
            expect.nothing("device without a link on lab-1", self._unlinked("lab-1"))

    @override
    def verify(self) -> None:
        with self.case("a kept result that is broken is made anew; an Xid of broken hardware is named"):
            self.host("lab-1").run(f"printf '%s' '{{' >{KEPT}", sudo=True)
            self.host("lab-2").run(f"echo '{XID}' >>/run/simulated-gpu/kmsg", sudo=True)
            run = self.deploy("verify broken", VERIFY, *STANDARD).expect_exit(1)
            expect.equal("what was changed on lab-1", run.result("lab-1")["changed"], ["survival", "proof-record"], run.log)
            run.expect_problem("lab-2", "failed", "Xid 79", "fallen off the bus", "power-cycle")

    def _unlinked(self, name: str) -> list[str]:
        return self.host(name).run(UNLINKED, sudo=True).stdout.split()

    def _expect(self, run: Run, name: str, check: str, status: str | None) -> None:
        found = {each["name"]: each["status"] for each in run.result(name)["checks"]}
        expect.equal(f"{check} of {name}", found.get(check), status, run.log)
