from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_no_changes
from e2e.pyinfra_run import Run
from e2e.scenario import VERIFY, Scenario
from e2e.shared_lab import wait_for_boot

SPEC = "/var/run/cdi/nvidia.yaml"
HAND_MADE = "/etc/cdi/nvidia.yaml"
CONFIG = "/etc/nvidia-container-runtime/config.toml"
# as it is after a driver was upgraded, and as a guide tells people to make it
STALE = f"mkdir -p /etc/cdi && sed 's/libcuda.so.5[0-9.]*/libcuda.so.550.90.07/' {SPEC} >{HAND_MADE}"
OTHER_NUMBER = f"sed -i '/nvidia-uvm$/{{n;s/major: .*/major: 510/}}' {SPEC}"
LEFTOVERS = (
    f"""sed -i -e 's/^#no-cgroups.*/no-cgroups = true/' -e 's/^ldconfig.*/ldconfig = "@\\/sbin\\/ldconfig.real"/' {CONFIG}"""
)
STOP_DRIVER = "systemctl stop nvidia-persistenced nvidia-fabricmanager && modprobe -r nvidia_uvm nvidia_modeset nvidia"
IDLE = "! systemctl is-active gpu-bringup-device-links.service gpu-bringup-cdi-spec.service | grep -q activating"
SLEEP = "python3 -c 'import time; time.sleep(600)'"
FULL = ("--data", "gpu_verify=full", "--data", 'gpu_docker_options={"live-restore": true}')


class Injection(Scenario):
    """CDI specs of another driver or boot, and what old guides leave in the toolkit's file, are named and set right; a boot keeps it so."""

    tier = "all"

    @override
    def create(self) -> None:
        self.lab = self.labs.converged()

    @override
    def converge(self) -> None:
        one, two = self.lab.hosts
        before = one.run(f"cat {CONFIG}").stdout
        one.run(LEFTOVERS, sudo=True)
        two.run(STALE, sudo=True)
        with self.case("verify names the hand-made spec of the old driver, and changes nothing"):
            run = self.deploy("verify", VERIFY).expect_exit(1)
            run.expect_problem("lab-2", "failed", HAND_MADE, "550.90.07")
        with self.case("the next run sets it right: one key each in config.toml, the spec of the driver that is loaded"):
            run = self._heal("heal")
            self._changed(run, "lab-1", "toolkit-config")
            self._changed(run, "lab-2", "cdi-spec")
            now = one.run(f"cat {CONFIG}").stdout
            expect.equal("config.toml", now, before.replace("#no-cgroups = false", "no-cgroups = false"))
            two.run(f"[ ! -e {HAND_MADE} ] && [ -e {HAND_MADE}.disabled ] && [ $(stat -c %a {SPEC}) = 644 ]", sudo=True)
        with self.case("a device number of another boot"):
            two.run(OTHER_NUMBER, sudo=True)
            run = self._heal("number")
            self._changed(run, "lab-2", "cdi-spec")
            expect.contains("the plan", run.output, "510:0 of another boot", where=run.log)

    @override
    def idempotence(self) -> None:
        expect_no_changes(self.deploy("idempotence"), self.hosts)

    @override
    def side_effect(self) -> None:
        two = self.host("lab-2")
        with self.case("a boot makes the spec anew, before Docker starts"):
            two.reboot()
            wait_for_boot(two)
            two.run(f"grep -q /dev/nvidia-uvm-tools {SPEC}", sudo=True)
            expect_no_changes(self.deploy("after the boot"), self.hosts)
        with self.case("a driver that is loaded anew gets its links and its spec without a run"):
            two.run(f"{STOP_DRIVER} && rm -f /dev/char/195:* {SPEC} && modprobe nvidia && modprobe nvidia_uvm", sudo=True)
            self._wait_on_lab_2(
                "links and a spec", f"[ -e /dev/char/195:0 ] && [ -e /dev/char/195:7 ] && grep -q uvm-tools {SPEC}"
            )
        with self.case("MIG's device nodes get links as they come"):
            two.run(
                "mkdir /dev/nvidia-caps && mknod /dev/nvidia-caps/nvidia-cap1 c 235 1 && mknod /dev/nvidia-caps/nvidia-cap2 c 235 2",
                sudo=True,
            )
            self._wait_on_lab_2("both links", "[ -e /dev/char/235:1 ] && [ -e /dev/char/235:2 ]")
            two.run(
                "rm -r /dev/nvidia-caps /dev/char/235:1 /dev/char/235:2; systemctl start nvidia-persistenced nvidia-fabricmanager",
                sudo=True,
            )
        with self.case("what is written to /dev/null starts nothing"):
            asked = "systemctl show -p InvocationID gpu-bringup-device-links.service gpu-bringup-cdi-spec.service"
            expect.wait_until("the units have ended", lambda: two.run(IDLE, sudo=True, check=False).returncode == 0, 20)
            before = two.run(asked).stdout
            two.run("for i in 1 2 3; do echo >/dev/null; sleep 1; done")
            expect.equal("the units' last runs", two.run(asked).stdout, before)

    @override
    def verify(self) -> None:
        with self.case("a user's container of --rm, which Docker 20.10 would take away, is named and lives on"):
            one = self.host("lab-1")
            one.run(f"docker run -d --rm --name mine $(docker image ls -q | head -n 1) {SLEEP}", sudo=True)
            run = self.deploy("rm", "deploys/gpu_host.py", "--data", 'gpu_docker_options={"log-driver": "local"}').expect_exit(1)
            expect.contains("the refusal", run.output, "would end mine, which were started with --rm", where=run.log)
            one.run("docker inspect mine >/dev/null && docker rm -f mine", sudo=True)
        with self.case("the full proof: daemon-reload and a restart of Docker under a running container, and a reboot"):
            run = self.deploy("full", "deploys/gpu_host.py", *FULL).expect_exit(0).expect_proven(*self.hosts)
            for name in self.hosts:
                checks = {each["name"]: each["status"] for each in run.result(name)["checks"]}
                for each in ("survival-daemon-reload", "survival-docker-restart", "survival-reboot"):
                    expect.equal(f"{each} of {name}", checks.get(each), "pass", run.log)
                expect.equal(f"reboots of {name}", run.result(name)["reboots"], 1, run.log)
                expect.true("not checked: performance (not measured)\n" in run.output, "nothing else unchecked", "more", run.log)
            expect_no_changes(self.deploy("full again", "deploys/gpu_host.py", *FULL), self.hosts)

    def _heal(self, what: str) -> Run:
        return self.deploy(what).expect_exit(0).expect_proven(*self.hosts)

    def _wait_on_lab_2(self, what: str, test: str) -> None:
        two = self.host("lab-2")
        expect.wait_until(what, lambda: two.run(test, sudo=True, check=False).returncode == 0, 20)

    def _changed(self, run: Run, name: str, step: str) -> None:
        expect.equal(f"what was done on {name}", run.result(name)["changed"], [step], run.log)
