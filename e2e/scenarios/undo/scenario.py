from __future__ import annotations

import json

from typing_extensions import override

from e2e import expect
from e2e.as_planned import expect_converged
from e2e.host_state import changes, host_state
from e2e.lab import faults
from e2e.lab.host import Host
from e2e.pyinfra_run import Run
from e2e.scenario import Scenario

UNDO = "deploys/undo.py"
OF_USER = {"debug": True, "max-concurrent-downloads": 5}
CLASHING = "/etc/apt/sources.list.d/cuda-debian12-x86_64.list"
OURS = r"(nvidia|libcuda|cuda-drivers|linux-headers)"
# everything that we write has our name in its own, or is one of these
FILES = "find /etc /usr/share/keyrings /usr/local -xdev -name '*gpu-bringup*'; ls -d /etc/cdi/nvidia.yaml 2>/dev/null || :"


class Undo(Scenario):
    """undo.py takes back what gpu_host.py did and leaves what others did; a second one finds nothing; gpu_host.py works again."""

    tier = "all"

    @override
    def prepare(self) -> None:
        """Both: a package of the user's. lab-1: a source that will be disabled. lab-2: the user's Docker, with keys in daemon.json."""
        one, two = self.lab.hosts
        for host in self.lab.hosts:
            faults.hold_dpkg_lock(host, 1)
        faults.clashing_source(one)
        wait = "apt-get -q -y -o DPkg::Lock::Timeout=60"
        two.run(f"{wait} update && DEBIAN_FRONTEND=noninteractive {wait} install docker.io", sudo=True, timeout_s=200)
        two.run("cat >/etc/docker/daemon.json && systemctl restart docker", sudo=True, stdin=json.dumps(OF_USER))

    @override
    def converge(self) -> None:
        expect_converged(self.deploy("converge"), self.hosts)
        for host in self.lab.hosts:
            expect.true(host.run("apt-mark showhold").stdout.strip(), f"packages held on {host.name}", "none")
            expect.true(host.run(FILES, sudo=True).stdout.strip(), f"files of ours on {host.name}", "none")

    @override
    def side_effect(self) -> None:
        """The user has a container on each, and that on lab-2 runs: nothing there may end it."""
        image = "$(docker image ls -q | head -n 1)"
        self.host("lab-1").run(f"docker create --name mine {image} sleep infinity", sudo=True)
        two = self.host("lab-2")
        two.run(f"docker run -d --runtime runc --name mine {image} sleep infinity", sudo=True)
        faults.broken_source(self.host("lab-1"), "malformed")  # apt there refuses everything that reads it
        before = host_state(two)
        run = self.deploy("undo", UNDO).expect_exit(1)
        self._done(run, "lab-1")
        self.host("lab-1").run("rm /etc/apt/sources.list.d/third-party-malformed.list", sudo=True)
        run.expect_problem("lab-2", "failed", "mine", "stop")
        expect.nothing("change on lab-2", changes(before, host_state(two)), run.log)
        expect.equal("the container of lab-2", self._container(two), "running", run.log)
        two.run("docker stop -t 1 mine", sudo=True)
        self._done(self.deploy("undo again", UNDO, "--limit", "lab-2").expect_exit(0), "lab-2")

    @override
    def verify(self) -> None:
        one, two = self.lab.hosts
        for host in self.lab.hosts:
            with self.case(f"nothing of ours is left on {host.name}"):
                found = host.run(f"dpkg-query -W -f '${{Package}} ${{db:Status-Abbrev}}\\n' | grep -E '^{OURS}' || :").stdout
                expect.nothing(f"package of ours on {host.name}", found.splitlines())
                expect.nothing(f"hold on {host.name}", host.run("apt-mark showhold").stdout.splitlines())
                left = [each for each in host.run(FILES, sudo=True).stdout.splitlines() if "backup" not in each]
                expect.nothing(f"file of ours on {host.name}", left)
                expect.equal(f"dpkg --audit on {host.name}", host.run("dpkg --audit", sudo=True).stdout, "")
                host.run("apt-get -q update -o Dir::Etc::sourceparts=/dev/null", sudo=True, timeout_s=120)
            with self.case(f"the user's package is on {host.name}"):
                state = host.run("dpkg-query -W -f '${db:Status-Abbrev}' slow-service").stdout.strip()
                expect.equal(f"the state of slow-service on {host.name}", state, "ii")
        with self.case("the user's Docker, its settings and container are as they were"):
            text = two.run("cat /etc/docker/daemon.json", sudo=True).stdout
            expect.equal("daemon.json of lab-2", json.loads(text), OF_USER)
            two.run("docker start mine && docker stop -t 1 mine", sudo=True)
        with self.case("the source that was disabled is back"):
            text = one.run(f"cat {CLASHING} && [ ! -e {CLASHING}.disabled ]", sudo=True).stdout
            expect.contains(CLASHING, text, "nvidia-old.gpg")
        with self.case("a second undo finds nothing"):
            before = {host.name: host_state(host) for host in self.lab.hosts}
            run = self.deploy("second undo", UNDO).expect_exit(0)
            expect.contains("a second undo", run.output, "changed   nothing", where=run.log)
            for host in self.lab.hosts:
                expect.nothing(f"step done on {host.name}", run.result(host.name)["changed"], run.log)
                expect.nothing(f"change on {host.name}", changes(before[host.name], host_state(host)), run.log)
        with self.case("gpu_host.py again: proven"):
            run = self.deploy("again").expect_exit(0)  # not held against its plan: Docker's images are there again with Docker
            for name in self.hosts:
                run.expect_proven(name)
            expect.contains("the container of lab-1", self._container(one), "created")

    def _done(self, run: Run, name: str) -> None:
        result = run.result(name)
        expect.equal(f"how undo ended for {name} ({'; '.join(result['problems'])})", result["ended"], "done", run.log)
        steps = ["undo-docker-settings", "undo-packages", "undo-files"]
        expect.equal(f"what undo did on {name}", result["changed"], steps, run.log)

    @staticmethod
    def _container(host: Host) -> str:
        return host.run("docker inspect -f '{{.State.Status}}' mine", sudo=True).stdout.strip()
