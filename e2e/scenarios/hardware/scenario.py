"""The main job on real hardware: a host on this machine's own GPU, from survey to report, and what only a real GPU can show."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
from pathlib import Path
from typing import ClassVar, Literal, cast

from typing_extensions import override

from bringup.steps.images import warm_name
from e2e import expect
from e2e.hardware import host, image, services
from e2e.hardware.paths import KIT, REPOSITORIES, ROOT_ARCHIVE, SSH_PORT
from e2e.lab.command import run
from e2e.pyinfra_run import CHECKOUT, Run
from e2e.scenario import GPU_HOST, Scenario

_INVENTORY = """\
hosts = [({name!r}, {data!r})]
"""
_STARTS = 5  # of each way of injection
_KERNEL = "import torch; x = torch.ones(1 << 20, device='cuda'); assert x.sum().item() == 1 << 20"


class Hardware(Scenario):
    """A machine's own GPU: fresh host to proven, Docker's ways to the GPU, limits, survival; numbers are kept beside the transcripts."""

    tier: ClassVar[Literal["short", "all", "hardware"]] = "hardware"

    reference: str
    inventory_file: Path
    measured: dict[str, object]
    """What goes to measured.json: data for the project, beside the transcripts."""

    @staticmethod
    @override
    def impossible() -> str | None:
        if not Path("/proc/driver/nvidia/version").exists():
            return "this machine has no loaded NVIDIA driver"
        if not (KIT / ROOT_ARCHIVE).exists():
            return f"there is no kit in {KIT}: `python -m e2e kit FOLDER` makes one"
        return None

    @override
    def create(self) -> None:
        python = image.ask_python()
        self.measured = {
            "schema": 1,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": {"kernel": platform.release(), "cores": os.cpu_count(), "torch": python.torch},
            "seconds": {},
        }
        host.create()
        services.serve()
        self.reference = image.push_image(python)
        host.start()
        self.inventory_file = self.folder / "inventory.py"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.inventory_file.write_text(_INVENTORY.format(name=host.NAME, data=self._data()))

    @override
    def converge(self) -> None:
        first = self._gpu_host("converge")
        result = first.result(host.NAME)
        expect.equal("hardware", result["hardware"], "real", first.log)
        kept = json.loads(host.run_on_host("cat /etc/docker/daemon.json"))
        expect.equal(
            "the user's own keys", [kept.get(key) for key in ("bridge", "iptables", "ip6tables")], ["none", False, False]
        )

    @override
    def idempotence(self) -> None:
        second = self._gpu_host("idempotence")
        expect.nothing("operation that changed the host again", second.result(host.NAME)["changed"], second.log)

    @override
    def verify(self) -> None:
        for way in ("--runtime runc --device nvidia.com/gpu=all", "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all"):
            with self.case(f"the GPU by {way.split(' -e')[0]}"):
                expect.contains("nvidia-smi -L in a container", self._docker(f"run --rm {way}", "nvidia-smi -L"), "GPU 0: ")
        with self.case("memlock in containers, as root and as another user"):
            found = [self._docker(f"run --rm --user {user}", "sh -c 'ulimit -l'").strip() for user in ("0", "1234")]
            expect.equal("ulimit -l of root and of another user", found, ["unlimited", "unlimited"])
        with self.case("a running container keeps its GPU over daemon-reload and a restart of Docker"):
            self._survival()
        with self.case("start-up times by way of injection"):
            self._startup()
        with self.case("the speed of the GPU"):
            self._fact("benchmark", "facts.verification.GpuBenchmark", f"image={self.reference}")
        with self.case("an image that is quick to start, measured before and after"):
            self._prewarm()
        with self.case("limits, as a container has them"):
            self._fact("limits", "facts.verification.ContainerLimits", f"image={self.reference}")
        with self.case("the standard proof, then the full one, kept"):
            self._proofs()

    @override
    def destroy(self) -> None:
        if host.CONSOLE.exists():
            shutil.copy(host.CONSOLE, self.folder / "console.log")
        host.destroy()

    def _gpu_host(self, what: str, *more: str) -> Run:
        done = self.deploy(what, GPU_HOST, *more, inventory=self.inventory_file, timeout_s=400)
        self._keep_run(what, done)
        done.expect_exit(0)
        result = done.result(host.NAME)
        expect.equal("how the host ended", [result["ended"], result["function"]], ["done", "proven"], done.log)
        return done

    def _survival(self) -> None:
        name = "keeps-its-gpu"
        self._docker(f"run -d --name {name} --runtime runc --device nvidia.com/gpu=all", "sleep 600")
        try:
            before = host.run_on_host(f"docker inspect -f '{{{{.State.StartedAt}}}}' {name}")
            for disturbance in ("systemctl daemon-reload", "systemctl restart docker"):
                host.run_on_host(disturbance, timeout_s=120)
                host.run_on_host(f'docker exec {name} python3 -c "{_KERNEL}"', timeout_s=180)
            expect.equal("its start", host.run_on_host(f"docker inspect -f '{{{{.State.StartedAt}}}}' {name}"), before)
        finally:
            host.run_on_host(f"docker rm -f {name}")

    def _prewarm(self) -> None:
        done = self.deploy(
            "prewarm", "deploys/images.py", "--data", "gpu_image_prewarm=image", inventory=self.inventory_file, timeout_s=400
        )
        self._keep_run("prewarm", done)
        done.expect_exit(0)
        warm = warm_name(self.reference)
        self._fact("startup warm", "facts.verification.CudaStartup", f"image={warm}", "injection=cdi", f"runs={_STARTS}")

    def _proofs(self) -> None:
        self._gpu_host("standard", "--data", "gpu_verify=standard")
        self._gpu_host("full", "--data", "gpu_verify=full")
        again = self._gpu_host("full again", "--data", "gpu_verify=full")
        expect.nothing("operation that changed the host again", again.result(host.NAME)["changed"], again.log)

    def _startup(self) -> None:
        for injection in ("cdi", "runtime"):
            asked = ["facts.verification.CudaStartup", f"image={self.reference}", f"injection={injection}", f"runs={_STARTS}"]
            self._fact(f"startup {injection}", *asked)
        probe = CHECKOUT / "bringup" / "probes" / "cuda_startup.py"
        bare = [run([shutil.which("python3") or "python3", str(probe)], timeout_s=180) for _ in range(_STARTS)]
        self._keep("startup bare", [json.loads(each.strip().splitlines()[-1]) for each in bare])

    def _fact(self, what: str, *asked: str) -> None:
        done = self.pyinfra(what, str(self.inventory_file), "fact", *asked, "--json", timeout_s=400)
        done.expect_exit(0)
        text = done.log.with_suffix(".stdout").read_text()
        found = json.loads(text[text.index("{") :])
        self._keep(what, next(iter(next(iter(found.values())).values())))  # of the one fact, on the one host

    def _keep_run(self, what: str, done: Run) -> None:
        self._keep(f"result of {what}", done.results.get(host.NAME))
        self.measured["seconds"] = {**cast(dict[str, float], self.measured["seconds"]), what: round(done.seconds, 1)}

    def _keep(self, what: str, found: object) -> None:
        self.measured[what] = found
        (self.folder / "measured.json").write_text(json.dumps(self.measured, indent=1) + "\n")

    def _docker(self, options: str, command: str) -> str:
        return host.run_on_host(f"docker {options} --network none --pull never {self.reference} {command}", timeout_s=180)

    def _data(self) -> dict[str, object]:
        described = KIT / REPOSITORIES
        return {
            "ssh_hostname": host.ADDRESS,
            "ssh_port": SSH_PORT,
            "ssh_user": host.USER,
            "ssh_key": str(host.SSH_KEY),
            "ssh_known_hosts_file": str(host.KNOWN_HOSTS),
            "ssh_strict_host_key_checking": "yes",
            "_sudo": True,
            "gpu_accept": ["container-host"],
            "gpu_docker_source": "existing",
            "gpu_driver_source": "preinstalled",
            "gpu_docker_options": {"live-restore": True},  # else a restart of Docker ends the containers, and their GPU work
            "gpu_images": [self.reference],
            **({"gpu_repositories": json.loads(described.read_text())} if described.exists() else {}),
        }
