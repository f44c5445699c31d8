from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from e2e import expect
from e2e.host_state import State, changes, host_state
from e2e.lab import registry, repository, services
from e2e.lab.gpu import PROFILES
from e2e.pyinfra_run import LAB_INVENTORY, Run
from e2e.scenario import GPU_HOST, Scenario
from e2e.shared_lab import change_gpu, start_services

# (--data argument, words that the error must hold)
WRONG_SETTINGS = (
    ("gpu_driver_brunch=580", ("gpu_driver_brunch", "gpu_driver_branch")),
    ("gpu_reboot=maybe", ("gpu_reboot", "maybe", "if-idle")),
    ("gpu_images=one", ("gpu_images", "list")),
    ("gpu_driver_branch=580.10", ("gpu_driver_branch", "quotes")),
)

Settings = Mapping[str, Mapping[str, Any]]
"""By host: what is set for it beyond what the lab's inventory says."""


class Refusals(Scenario):
    """What cannot be done is said in one sentence by host, exit 1 (wrong settings: 2), with a report, and nothing is changed."""

    @override
    def converge(self) -> None:
        """Refused on fresh hosts, before anything was done."""
        with self.case("wrong settings"):
            self._wrong_settings()
        with self.case("an inventory that is not there"):
            run = self.pyinfra("no inventory", "-y", "inventories/lob.py", GPU_HOST, timeout_s=30).expect_exit(2)
            expect.contains("the error", run.output, "inventories/lob.py", where=run.log)
        with self.case("a driver branch that there is not; a container without gpu_accept"):
            settings: Settings = {"lab-1": {"gpu_driver_branch": "999"}, "lab-2": {"gpu_accept": []}}
            self._refused(
                "branch container", settings, {"lab-1": ("999", "580"), "lab-2": ("container", "container-host", "gpu_accept")}
            )
        with self.case("a driver branch at its end of life; a daemon.json that is no JSON"):
            self.host("lab-2").run("mkdir -p /etc/docker && echo '{\"debug\": true,,}' >/etc/docker/daemon.json", sudo=True)
            words = {"lab-1": ("550", "end of life", "end-of-life"), "lab-2": ("/etc/docker/daemon.json", "line 1")}
            self._refused("eol broken-json", {"lab-1": {"gpu_driver_branch": "550"}}, words)
            self.host("lab-2").run("rm /etc/docker/daemon.json", sudo=True)
        with self.case("an unsupported distribution; a host without GPU"):
            self._strange_hosts()
        with self.case("a wrong key fingerprint; a branch that the repository has not"):
            self._wrong_sources()
        with self.case("package repositories that do not answer"):
            services.stop(self.lab.network, repository.SERVICE)
            words = {name: (repository.address(self.lab.network), "key") for name in self.hosts}
            self._failed("dead repository", {name: {} for name in self.hosts}, words)

    @override
    def verify(self) -> None:
        """On proven hosts: what a run cannot do now does not hurt what was done before."""
        self.lab = self.labs.converged()
        with self.case("a registry that does not answer"):
            services.stop(self.lab.network, registry.SERVICE)
            self.host("lab-1").run("docker image rm -f $(docker image ls -q)", sudo=True)
            run = self.deploy("dead registry", timeout_s=200).expect_exit(1)
            run.expect_problem("lab-1", "failed", registry.address(self.lab.network))
            run.expect_proven("lab-2")
        with self.case("a host that cannot be reached: the others go on"):
            start_services(self.lab)
            self.host("lab-2").power_off()
            run = self.deploy("unreachable", timeout_s=200).expect_exit(1)
            run.expect_proven("lab-1").expect_problem("lab-2", "unreachable", "could not be reached")

    @override
    def destroy(self) -> None:
        if hasattr(self, "lab"):
            start_services(self.lab)

    def _wrong_settings(self) -> None:
        before = self._states()
        for data, words in WRONG_SETTINGS:
            run = self.pyinfra(f"data {data}", "-y", "--data", data, LAB_INVENTORY, GPU_HOST, timeout_s=60).expect_exit(2)
            expect.contains(f"the error on --data {data}", run.output, *words, where=run.log)
        self._expect_nothing_changed(before, run)

    def _strange_hosts(self) -> None:
        self.host("lab-1").run(
            "rm /etc/os-release && printf 'ID=arch\\nPRETTY_NAME=\"Arch Linux\"\\nVERSION_ID=2026\\n' >/etc/os-release", sudo=True
        )
        change_gpu(self.host("lab-2"), PROFILES["none"])
        try:
            words = {"lab-1": ("Arch Linux", "not supported", "debian"), "lab-2": ("no NVIDIA GPU", "gpu_expected_count")}
            self._refused("distribution no-gpu", {}, words)
        finally:
            change_gpu(self.host("lab-2"), PROFILES["h200x8"])
            self.lab = self.labs.fresh()

    def _wrong_sources(self) -> None:
        lab = json.loads((self.lab.hosts[0].folder.parent.parent / "lab.json").read_text())
        wrong = lab["repositories"]
        wrong["nvidia-driver"]["fingerprint"] = "0123456789" * 4
        words = {"lab-1": ("fingerprint", "0123456789" * 4), "lab-2": ("has no driver 595", "it has 580.178.04, 620.70.06")}
        self._failed("wrong sources", {"lab-1": {"gpu_repositories": wrong}, "lab-2": {"gpu_driver_branch": "595"}}, words)

    def _refused(self, what: str, settings: Settings, words: Mapping[str, tuple[str, ...]]) -> None:
        before = self._states()
        run = self.deploy(what, inventory=self._inventory(what, settings), timeout_s=90).expect_exit(1)
        for name in self.hosts:
            result = run.expect_problem(name, "refused", *words[name])
            expect.equal(f"the number of problems of {name}", len(result["problems"]), 1, run.log)
            expect.nothing(f"step done on {name}", result["changed"], run.log)
        self._expect_nothing_changed(before, run)

    def _failed(self, what: str, settings: Settings, words: Mapping[str, tuple[str, ...]]) -> None:
        """Seen only when the source is read, which is before anything of it is used."""
        before = self._states()
        run = self.deploy(what, inventory=self._inventory(what, settings), timeout_s=150).expect_exit(1)
        for name in self.hosts:
            run.expect_problem(name, "failed", *words[name])
        self._expect_nothing_changed(before, run)

    def _inventory(self, what: str, settings: Settings) -> Any:
        return self.inventory(what, {name: settings.get(name, {}) for name in self.hosts})

    def _states(self) -> dict[str, State]:
        return {host.name: host_state(host) for host in self.lab.hosts}

    def _expect_nothing_changed(self, before: dict[str, State], run: Run) -> None:
        after = self._states()
        for name in self.hosts:
            expect.nothing(f"change on {name}", changes(before[name], after[name]), run.log)
