"""What becomes of images that are there: tags that move, old ones, slow ones; and images from files."""

from __future__ import annotations

import subprocess

from e2e import expect
from e2e.lab import image as image_of_the_lab
from e2e.lab import registry, registry_faults
from e2e.scenarios.images.base import ImageScenario, noise


class Keeping(ImageScenario):
    def _moved(self) -> None:
        registry_faults.answer()
        moved = registry_faults.make_image(self.lab.network, "train", "1", [noise(1)])
        before = len(registry_faults.requests())
        kept = self._run("not asked", "train:1").expect_exit(0)
        expect.nothing("request to the registry where nobody asked for a refresh", registry_faults.requests()[before:], kept.log)
        run = self._run("refresh", "train:1", more={"gpu_images_refresh": True}).expect_exit(0)
        expect.contains("the run that asks again", run.output, "train:1 has moved", self.digest, moved, where=run.log)
        expect.equal("the digest in the lock file", self._locked("train:1"), moved)
        for name in self.hosts:
            self._expect_there(name, "train", moved)
        after = self._run("after refresh", "train:1").expect_exit(0)
        for name in self.hosts:
            expect.nothing(f"change on {name} after the refresh", after.result(name)["changed"], after.log)

    def _pruned(self) -> None:
        """The image that the tag train:1 was before; a stopped container on lab-1 is made of it."""
        self.host("lab-1").run(f"docker create --name theirs {self._registry}/train@{self.digest}", sudo=True)
        kept = self._run("not pruned", "train:1").expect_exit(0)
        expect.nothing("image removed unasked", kept.result("lab-2")["changed"], kept.log)
        run = self._run("pruned", "train:1", more={"gpu_images_prune": True}).expect_exit(0)
        expect.contains("the run that prunes", run.output, "stays: used by theirs", where=run.log)
        for name in self.hosts:
            images = self.host(name).run("docker image ls -a --digests --no-trunc", sudo=True).stdout
            expect.equal(f"whether {name} has the old image", self.digest in images, name == "lab-1", run.log)
            expect.true(self._locked("train:1") in images, f"{name} to keep the new image", images, run.log)
        again = self._run("pruned again", "train:1", more={"gpu_images_prune": True}).expect_exit(0)
        expect.nothing("change by a second run that prunes", again.result("lab-2")["changed"], again.log)

    def _prewarmed(self) -> None:
        registry_faults.answer()
        image, more = f"{image_of_the_lab.NAME}:{image_of_the_lab.TAG}", {"gpu_image_prewarm": "image"}
        found = self._run("cold", image, limit="lab-1 lab-2").expect_exit(0)
        for name in ("lab-1", "lab-2"):
            (warmth,) = found.result(name)["measured"]["image_warmth"].values()
            expect.true(
                warmth["missing"] > 0 and warmth["import_s"], f"modules without .pyc to be counted on {name}", warmth, found.log
            )
        expect.contains("the run that pulls", found.output, "have no valid .pyc file", "gpu_image_prewarm", where=found.log)
        run = self._run("prewarm", image, limit="lab-1 lab-2", more=more).expect_exit(0)
        for name in ("lab-1", "lab-2"):
            before, after = run.result(name)["measured"]["image_warmth"].values()
            expect.true(
                before["missing"] > 0 == after["missing"] + after["stale"], f"nothing cold after it on {name}", after, run.log
            )
            warm = next(each for each in run.result(name)["measured"]["image_warmth"] if each.startswith("gpu-bringup/"))
            starts = "'{{json .Config.Cmd}} {{json .Config.Entrypoint}} {{json .Config.Env}} {{.Config.WorkingDir}}'"
            ways = [
                self.host(name).run(f"docker image inspect -f {starts} {each}", sudo=True).stdout
                for each in (warm, f"{self._registry}/{image}")
            ]
            expect.equal(
                f"how the derived image starts on {name}", ways[0].replace("[]", "null"), ways[1].replace("[]", "null"), run.log
            )
        again = self._run("prewarm again", image, limit="lab-1 lab-2", more=more).expect_exit(0)
        expect.nothing("change by a second run", again.result("lab-1")["changed"] + again.result("lab-2")["changed"], again.log)

    def _archived(self) -> None:
        """Written by skopeo from the real registry, named as of another one, which is never asked."""
        registry_faults.make_image(self.lab.network, "file", "1", [noise(2)])
        path, name = self.folder / "file.tar", "registry.invalid/file:1"
        address = registry.address(self.lab.network)
        command = ["skopeo", "--insecure-policy", "copy", "--quiet", "--src-tls-verify=false"]
        subprocess.run([*command, f"docker://{address}/file:1", f"docker-archive:{path}:{name}"], check=True, timeout=60)
        more = {"gpu_images": [name], "gpu_images_archive": {name: str(path)}}
        cut = self.folder / "cut.tar"
        cut.write_bytes(path.read_bytes()[:-1_000_000])
        refused = self._run("cut file", "", more={**more, "gpu_images_archive": {name: str(cut)}}).expect_exit(1)
        other = self._run(
            "other digest", "", more={**more, "gpu_images_archive": {f"{name}@{self.digest}": str(path)}}
        ).expect_exit(1)
        for host in self.hosts:
            refused.expect_problem(host, "failed", str(cut), "cut off", "nothing was loaded")
            other.expect_problem(host, "failed", self.digest, "is wanted", "nothing was loaded")
            expect.nothing(f"image loaded on {host}", self.host(host).run(f"docker image ls -q {name}", sudo=True).stdout.split())
        run = self._run("file", "", more=more).expect_exit(0)
        for host in self.hosts:
            expect.true(
                self.host(host).run(f"docker image ls -q {name}", sudo=True).stdout, f"{name} on {host}", "nothing", run.log
            )
        again = self._run("file again", "", more=more).expect_exit(0)
        expect.nothing(
            "change by a second run", (each for host in self.hosts for each in again.result(host)["changed"]), again.log
        )
