from __future__ import annotations

from typing_extensions import override

from e2e import expect
from e2e.lab import image as image_of_the_lab
from e2e.lab import registry_faults
from e2e.lab.lab import Lab
from e2e.pyinfra_run import Run
from e2e.scenarios.images.base import IMAGES, MEGABYTE, noise
from e2e.scenarios.images.interrupted import Interrupted
from e2e.scenarios.images.keeping import Keeping

RUNTIME = "deploys/container_runtime.py"
SECRET = "not-to-be-seen-7f3a"  # noqa: S105 - of this scenario's own registry
ROOT = "/var/lib/docker"


class Images(Keeping, Interrupted):
    """Three hosts pull one digest at once; a registry that fails in every way is healed or named, before the first byte where it can be."""

    tier = "all"

    first: Run

    @override
    def create(self) -> None:
        """A third host: the shared lab has two."""
        self.labs.down()
        self.lab = Lab.up(hosts=3)
        registry_faults.serve_proxy(self.lab.network)

    @override
    def destroy(self) -> None:
        Lab.down()

    @override
    def prepare(self) -> None:
        """Docker on the hosts, which trusts both registries; no driver is needed to pull."""
        self.digest = registry_faults.make_image(self.lab.network, "train", "1", [noise(4) for _ in range(3)])
        run = self.pyinfra("docker", "-y", self._inventory("docker"), "deploys/preflight.py", RUNTIME)
        run.expect_exit(0)

    @override
    def converge(self) -> None:
        dry = self.pyinfra("dry", "--dry", self._inventory("dry"), IMAGES).expect_exit(0)
        expect.contains("what --dry prints", dry.output, "docker pull, because", "train:1 not on the host", where=dry.log)
        expect.nothing("request to the registry by --dry", registry_faults.requests(), dry.log)
        expect.true(not (self.folder / "images.lock.yml").exists(), "no lock file by --dry", "one", dry.log)
        registry_faults.answer({"path": "/blobs/", "rate": 2 * MEGABYTE})
        self.first = self._run("three at once", "train:1").expect_exit(0)
        expect.contains("the progress of the pull", self.first.output, "pulling", "layers", where=self.first.log)
        for name in self.hosts:
            self._expect_there(name, "train", self.digest, "train:1")
        asked = [each for each in registry_faults.requests() if each.startswith("GET") and each.endswith("/train/manifests/1")]
        expect.true(len(asked) <= 1, "the tag to be resolved once for all hosts", asked, self.first.log)
        expect.equal("the digest in the lock file", self._locked("train:1"), self.digest)

    @override
    def idempotence(self) -> None:
        before = len(registry_faults.requests())
        again = self._run("again", "train:1").expect_exit(0)
        for name in self.hosts:
            expect.nothing(f"change on {name} by a second run", again.result(name)["changed"], again.log)
        expect.nothing("request to the registry by a second run", registry_faults.requests()[before:], again.log)

    @override
    def side_effect(self) -> None:
        """What heals by itself, or by a setting."""
        with self.case("no more hosts pull at the same time than are allowed"):
            self._parallel()
        with self.case("a mirror of Docker's own registry, and one that is down"):
            self._mirrors()
        with self.case("the registry is killed in the middle of a pull and comes back"):
            self._killed()
        with self.case("the run is killed in the middle of a pull, and the next one joins it"):
            self._run_killed()
        with self.case("a host loses power in the middle of a pull"):
            self._power_lost()
        with self.case("connections that are cut"):
            registry_faults.make_image(self.lab.network, "cut", "1", [noise(3)])
            registry_faults.answer({"path": "/cut/blobs/", "cut": MEGABYTE, "times": 2})
            self._run("cut", "cut:1", limit="lab-2").expect_exit(0)
        with self.case("a login, with its password in the environment"):
            self._login()
        with self.case("a tag that has moved"):
            self._moved()
        with self.case("old images go where that is asked for, and stay under a container"):
            self._pruned()
        with self.case("an image whose .pyc files are missing is found and mended"):
            self._prewarmed()
        with self.case("an image from a file"):
            self._archived()

    @override
    def verify(self) -> None:
        """What does not: one sentence each, before the first byte where that can be known, and not tried in vain."""
        network = self.lab.network
        digest = registry_faults.make_image(network, "small", "1", [noise(1)])
        with self.case("429 with Retry-After"):
            rule = {
                "path": "/small/",
                "status": 429,
                "code": "TOOMANYREQUESTS",
                "message": "slow down",
                "headers": {"Retry-After": "37"},
            }
            self._refused("limited", "small:1", rule, "429", "wait 37 s as it asks", "gpu_registry_login")
        with self.case("401"):
            self._refused("no login", "small:1", {"path": "/v2/", "login": f"me:{SECRET}"}, "wants a login", "gpu_registry_login")
        with self.case("403"):
            rule = {"path": "/small/", "status": 403, "code": "DENIED", "message": "requested access to the resource is denied"}
            self._refused("denied", "small:1", rule, "403", "without login")
        with self.case("manifest unknown"):
            self._refused("unknown", "small:gone", None, "has no small:gone", "manifest unknown")
        with self.case("an index without the host's architecture"):
            registry_faults.make_index(network, "small", "arm", digest, "arm64")
            self._refused("architecture", "small:arm", None, "nothing for this host's architecture (x86_64)", "it has aarch64")
        with self.case("what an image requires of the driver"):
            needs = ["NVIDIA_REQUIRE_CUDA=cuda>=99.0"]
            registry_faults.make_image(network, "demanding", "1", [noise(1)], needs)
            self._refused("requirement", "demanding:1", None, "requires cuda>=99.0 (NVIDIA_REQUIRE_CUDA)")
        with self.case("an image whose torch has no code for the GPU, by what it states and by what is inside"):
            self._without_code()
        with self.case("a disk that is too small, and one that fills up"):
            self._disks()

    def _parallel(self) -> None:
        """Counted where the layers come from."""
        for allowed in (1, 2):
            name = f"many-{allowed}"
            registry_faults.make_image(self.lab.network, name, "1", [noise(2), noise(2)])
            registry_faults.answer({"path": f"/{name}/blobs/", "rate": MEGABYTE})
            run = self._run(name, f"{name}:1", more={"gpu_pull_parallel": allowed}).expect_exit(0)
            spans = registry_faults.pulls(self.lab.network, name, "1").values()
            expect.equal("hosts that pulled", len(spans), len(self.hosts), run.log)
            most = max(sum(began <= at < ended for began, ended in spans) for at, _ in spans)
            expect.equal(f"hosts that pulled at the same time with gpu_pull_parallel {allowed}", most, allowed, run.log)

    def _mirrors(self) -> None:
        """The lab cannot reach Docker's own registry: what comes came from the mirror."""
        registry_faults.answer()
        digest = registry_faults.make_image(self.lab.network, "team/mirrored", "1", [noise(16)])
        image, mirror = "team/mirrored:1", f"http://{self._registry}"
        more = {"gpu_images": [image], "gpu_registry_mirrors": [mirror]}
        self.pyinfra("mirror", "-y", "--limit", "lab-2", self._inventory("mirror", more=more), RUNTIME).expect_exit(0)
        host = self.host("lab-2")
        run = self._run("from the mirror", "", limit="lab-2", more=more).expect_exit(0)
        found = host.run("docker image ls --digests --format '{{.Repository}}:{{.Tag}}@{{.Digest}}'", sudo=True).stdout
        expect.contains("the images of lab-2", found, f"team/mirrored:1@{digest}", where=run.log)
        expect.contains("the progress of a pull whose size the mirror tells", run.output, "of 16.8 MB", where=run.log)
        down = [mirror, f"http://{self.lab.network.gateway}:9"]
        other = {"gpu_images": ["team/other:1"], "gpu_registry_mirrors": down}
        run = self._run("mirror down", "", limit="lab-2", more=other).expect_exit(1)
        run.expect_problem("lab-2", "failed", down[1], "cannot be reached", "gpu_registry_mirrors")
        again = self._run("again with a mirror down", "", limit="lab-2", more={**other, "gpu_images": [image]}).expect_exit(0)
        expect.true("images" not in again.result("lab-2")["changed"], "no image to be pulled again", again.log)

    def _without_code(self) -> None:
        network, name = self.lab.network, image_of_the_lab.NAME
        states = ["NVIDIA_PYTORCH_VERSION=26.05", "CUDA_VERSION=13.0.1", "TORCH_CUDA_ARCH_LIST=7.5 8.6"]
        registry_faults.make_image(network, "old-code", "1", [noise(1)], states)
        self._refused("states no code", "old-code:1", None, "old-code:1 has no code for H200", "compute capability 9.0")
        registry_faults.make_variant(network, name, image_of_the_lab.TAG, "old-code", ["STANDIN_TORCH_CODE=sm_75 sm_86"])
        wanted, more = f"{name}:old-code", {"gpu_image_prewarm": "off"}
        run = self._run("no code inside", wanted, limit="lab-2", more=more).expect_exit(1)
        run.expect_problem("lab-2", "failed", "old-code", "has no code for H200", "was removed again")
        expect.contains(
            "what was found inside", run.output, "torch 2.11.0+standin, CUDA 13.0, code for sm_75 sm_86", where=run.log
        )
        have = self.host("lab-2").run(f"docker image ls -q {self._registry}/{name}:old-code", sudo=True).stdout
        expect.nothing("image that cannot run on lab-2", have.split(), run.log)
        before = len(registry_faults.requests())
        again = self._run("no code, known", wanted, limit="lab-1 lab-2", more=more).expect_exit(1)
        for host in ("lab-1", "lab-2"):
            again.expect_problem(host, "failed", "has no code for H200", "name another image")
        expect.nothing("request to the registry, which the lock file saves", registry_faults.requests()[before:], again.log)

    def _login(self) -> None:
        registry_faults.make_image(self.lab.network, "private", "1", [noise(1)])
        registry_faults.answer({"path": "/v2/", "login": f"me:{SECRET}"})
        login = {"gpu_registry_login": {self._registry: {"username": "me", "password_env": "LAB_PASSWORD"}}}
        missing = self._run("no password", "private:1", limit="lab-2", more=login).expect_exit(1)
        missing.expect_problem("lab-2", "failed", "the password for", "LAB_PASSWORD")
        wrong = self._run(
            "wrong password", "private:1", limit="lab-2", more=login, environment={"LAB_PASSWORD": "wrong"}
        ).expect_exit(1)
        wrong.expect_problem("lab-2", "failed", "does not accept the login", "401")
        right = self._run("login", "private:1", limit="lab-2", more=login, environment={"LAB_PASSWORD": SECRET}).expect_exit(0)
        for path in (right.log, *right.reports.rglob("*")):
            if path.is_file():
                expect.true(SECRET not in path.read_text(errors="replace"), "the password in no transcript and no report", path)
        places = "/etc /root /run /tmp /home"
        found = self.host("lab-2").run(f"grep -rlsF {SECRET} {places} --exclude-dir=systemd || :", sudo=True).stdout
        expect.nothing("file on the host with the password", found.splitlines())
        expect.nothing(
            "login that stays on the host", self.host("lab-2").run("ls /root/.docker/config.json || :", sudo=True).stdout.split()
        )

    def _disks(self) -> None:
        host = self.host("lab-3")
        host.run(
            f"systemctl stop docker.socket docker && mount -t tmpfs -o size=48m tmpfs {ROOT} && systemctl start docker", sudo=True
        )
        try:
            registry_faults.make_image(self.lab.network, "large", "1", [noise(16)])
            registry_faults.answer()
            before = len(registry_faults.requests())
            run = self._run("too small", "large:1", limit="lab-3").expect_exit(1)
            run.expect_problem("lab-3", "failed", f"free on {ROOT}", "are needed", "16.8 MB compressed", "data-root")
            expect.nothing(
                "layer asked for",
                (
                    each
                    for each in registry_faults.requests()[before:]
                    if "/blobs/" in each and "GET" in each and self._is_layer(each)
                ),
                run.log,
            )
            # a hundredth of its size while it is compressed: nothing that a registry tells gives it away
            registry_faults.make_image(self.lab.network, "zeros", "1", [bytes(96 * MEGABYTE)])
            run = self._run("fills up", "zeros:1", limit="lab-3").expect_exit(1)
            run.expect_problem("lab-3", "failed", "filled up while zeros:1 was pulled", "no space left on device", "data-root")
            used = int(host.run(f"df -P -k {ROOT} | awk 'END {{ print $3 }}'", sudo=True).stdout)
            expect.true(used < 8 << 10, "what was pulled to be removed again", f"{used} KiB used", run.log)
        finally:
            host.run(f"systemctl stop docker.socket docker; umount {ROOT}; systemctl start docker", sudo=True, check=False)

    def _is_layer(self, request: str) -> bool:
        """The settings of an image are asked for as a blob too, of some hundred bytes, by the look before a pull."""
        return request in [f"GET /v2/large/blobs/{each}" for each in registry_faults.layers(self.lab.network, "large", "1")]
