"""What the cases of images share: runs with an image of the lab's registry, and looks at what the hosts have."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import yaml

from e2e import expect
from e2e.lab import registry, registry_faults
from e2e.pyinfra_run import Run, Started
from e2e.scenario import Scenario

IMAGES = "deploys/images.py"
MEGABYTE = 1 << 20


class ImageScenario(Scenario):
    """Hosts that pull from the registry that fails as it is told to."""

    digest: str

    def _half_way(self, name: str, *hosts: str) -> tuple[Started, int]:
        """A run whose hosts have begun to pull an image slowly, and how many requests came before."""
        registry_faults.make_image(self.lab.network, name, "1", [noise(4) for _ in range(3)])
        registry_faults.answer({"path": f"/{name}/blobs/", "rate": MEGABYTE // 2})
        before = len(registry_faults.requests())
        limits = [word for host in hosts for word in ("--limit", host)]
        run = self.start(name, "-y", *limits, self._inventory(name, f"{name}:1"), IMAGES)
        layers = {f"GET /v2/{name}/blobs/{each}" for each in registry_faults.layers(self.lab.network, name, "1")}
        expect.wait_until(
            "layers to be asked for",
            lambda: sum(each in layers for each in registry_faults.requests()[before:]) >= len(layers) * len(hosts),
            60,
        )
        return run, before

    def _refused(self, what: str, image: str, rule: Mapping[str, Any] | None, *words: str) -> None:
        registry_faults.answer(*([dict(rule)] if rule else []))
        before = len(registry_faults.requests())
        run = self._run(what, image, limit="lab-2").expect_exit(1)
        run.expect_problem("lab-2", "failed", *words)
        expect.nothing(f"change on lab-2 ({what})", run.result("lab-2")["changed"], run.log)
        asked = registry_faults.requests()[before:]
        expect.true(len(asked) < 20, "the registry not to be asked in vain", f"{len(asked)} requests", run.log)

    @property
    def _registry(self) -> str:
        return registry_faults.proxy_address(self.lab.network)

    def _run(
        self,
        what: str,
        image: str,
        *,
        limit: str = "",
        more: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Run:
        selected = [word for host in limit.split() for word in ("--limit", host)]
        return self.pyinfra(
            what, "-y", *selected, self._inventory(what, image, more), IMAGES, timeout_s=240, environment=environment
        )

    def _inventory(self, name: str, image: str = "train:1", more: Mapping[str, Any] | None = None) -> str:
        data = {
            "gpu_images": [f"{self._registry}/{image}"],
            "gpu_images_lock": str(self.folder / "images.lock.yml"),
            "gpu_insecure_registries": [registry.address(self.lab.network), self._registry],
            **(more or {}),
        }
        return str(self.inventory(name, dict.fromkeys(self.hosts, data)))

    def _locked(self, image: str) -> str:
        found: str = yaml.safe_load((self.folder / "images.lock.yml").read_text())["images"][f"{self._registry}/{image}"][
            "digest"
        ]
        return found

    def _expect_there(self, name: str, repository: str, digest: str, tag: str | None = None) -> None:
        printed = (
            self.host(name)
            .run("docker image ls --digests --format '{{.Repository}}@{{.Digest}} {{.Repository}}:{{.Tag}}'", sudo=True)
            .stdout
        )
        expect.contains(
            f"the images of {name}",
            printed,
            f"{self._registry}/{repository}@{digest}",
            *([f"{self._registry}/{tag}"] if tag else []),
        )


def noise(megabytes: int) -> bytes:
    """What no compression makes smaller."""
    return os.urandom(megabytes * MEGABYTE)
