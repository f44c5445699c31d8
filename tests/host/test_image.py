"""The images of gpu_images: on the host, and able to use its GPUs in a container."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from testinfra.host import Host

from bringup.catalog import Catalog
from bringup.settings import Settings
from tests.host.conftest import Info
from tests.host.expected import Board, docker_flags, injection, limit_of, may_raise_limits, reference

pytestmark = [pytest.mark.usefixtures("gpu_host"), pytest.mark.timeout(300)]
LIMIT_S = 180  # the first import of torch from a cold disk takes a minute
# What a container says of itself, all in one start
SCRIPT = """
echo "memlock $(ulimit -S -l)"
nvidia-smi -L 2>&1 | sed 's/^/smi /'
python3 -c 'import torch; print("torch", torch.cuda.is_available(), torch.cuda.device_count())' 2>&1 | sed 's/^/python /'
"""


@dataclass(frozen=True)
class Started:
    """What was printed, by its first word; `trouble`: Docker's words when there was no container."""

    lines: dict[str, list[str]]
    trouble: str


@pytest.fixture(scope="session")
def image(named: str, catalog: Catalog, loaded: str | None, boards: tuple[Board, ...]) -> str:
    """The full reference of an entry of gpu_images; empty where the catalog has none for this host."""
    return reference(named, catalog, loaded, boards) or ""


@pytest.fixture(scope="session")
def container(host: Host, image: str, docker: Info, settings: Settings, catalog: Catalog) -> Started:
    """One container with all GPUs."""
    if not image or not docker:
        return Started({}, "Docker does not answer" if image else "no image")
    flags = docker_flags(injection(settings, catalog, docker["ServerVersion"]))
    command = f"timeout {LIMIT_S} docker run --rm --pull never --network none {flags} --entrypoint sh %s -c %s"
    done = host.run(command, image, SCRIPT)
    lines: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        lines.setdefault(word, []).append(rest)
    return Started(lines, "" if lines else done.stderr.strip() or f"exit {done.rc}")


def test_image_is_on_the_host(host: Host, image: str, named: str, loaded: str | None) -> None:
    assert image, f"the catalog has no image {named} for the GPUs and the driver ({loaded or 'none is loaded'}) of this host"
    digests = host.run("docker image inspect -f '{{join .RepoDigests \"\\n\"}}' %s", image)
    assert digests.rc == 0, digests.stderr
    _, _, digest = image.partition("@")
    assert not digest or digest in [each.partition("@")[2] for each in digests.stdout.split()]


def test_container_sees_every_gpu(container: Started, boards: tuple[Board, ...]) -> None:
    assert not container.trouble
    assert len([each for each in container.lines.get("smi", []) if each.startswith("GPU ")]) == len(boards), container.lines


def test_torch_can_use_every_gpu(container: Started, boards: tuple[Board, ...]) -> None:
    assert not container.trouble
    said = container.lines.get("python", [])
    if any("No module named 'torch'" in each or "python3: not found" in each for each in said):
        pytest.skip("the image has no torch")
    assert said[-1:] == [f"torch True {len(boards)}"], said


def test_memlock_of_a_container(host: Host, container: Started, settings: Settings) -> None:
    if not may_raise_limits(host.file("/proc/1/status").content_string):
        pytest.skip("PID 1 may not raise hard limits here (no CAP_SYS_RESOURCE)")
    assert not container.trouble
    assert limit_of(container.lines["memlock"][0], 1024) == settings.memlock
