"""Pulls that end half-way: the registry, the run, or the host goes."""

from __future__ import annotations

from e2e import expect
from e2e.lab import registry, registry_faults, services
from e2e.scenarios.images.base import ImageScenario


class Interrupted(ImageScenario):
    def _killed(self) -> None:
        run, _ = self._half_way("slow", "lab-1")
        services.stop(self.lab.network, registry_faults.PROXY)
        services.stop(self.lab.network, registry.SERVICE)
        expect.true(run.is_running(), "the run to go on without the registry", "that it ended", run.log)
        registry_faults.answer()
        registry.serve(self.lab.network)
        registry_faults.serve_proxy(self.lab.network)
        run.wait(300).expect_exit(0)

    def _run_killed(self) -> None:
        run, before = self._half_way("joined", "lab-1")
        run.kill()
        again = self._run("joined again", "joined:1", limit="lab-1").expect_exit(0)
        asked = [each for each in registry_faults.requests()[before:] if "/blobs/" in each and "GET" in each]
        once = {f"GET /v2/joined/blobs/{each}" for each in registry_faults.layers(self.lab.network, "joined", "1")}
        expect.equal(
            "how often each layer was asked for", sorted(each for each in asked if each in once), sorted(once), again.log
        )

    def _power_lost(self) -> None:
        """The other host's pull is not held up, and the run ends in time."""
        run, _ = self._half_way("lost", "lab-1", "lab-2")
        self.host("lab-2").power_off()
        registry_faults.answer()
        try:
            ended = run.wait(200).expect_exit(1)
            ended.expect_problem("lab-2", "failed", "no answer from the host", "lost:1")
            self._expect_there("lab-1", "lost", self._locked("lost:1"))
        finally:
            host = self.host("lab-2")
            host.power_on()
            host.wait()
            expect.wait_until("Docker on lab-2", lambda: host.run("docker info", sudo=True, check=False).returncode == 0, 60)
        healed = self._run("after the loss of power", "lost:1", limit="lab-1 lab-2").expect_exit(0)
        self._expect_there("lab-2", "lost", self._locked("lost:1"), "lost:1")
        expect.nothing(
            "folder of a pull that is left", self.host("lab-2").run("ls -d /run/gpu-bringup-pull* || :").stdout.split()
        )
        expect.nothing("change on lab-1", healed.result("lab-1")["changed"], healed.log)
