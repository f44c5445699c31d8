"""Room for a pull, its progress, and what an image requires of the driver."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from bringup import catalog
from bringup.policy.fit import Loaded
from bringup.pulls import Progress, fleet_line, host_line, lack_of_room, parse_progress
from bringup.report.images import gpus_called
from bringup.requirements import own_libcuda, unmet
from bringup.survey import Disk
from operations.image_scripts import SUMS, WORKER

CATALOG = catalog.load()
LIST = "NVIDIA_REQUIRE_CUDA=cuda>=12.8 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536"


@pytest.mark.parametrize(
    ("compressed", "ratio", "kib", "inodes", "says"),
    [
        (4_100_000_000, 2.7, 2_806_180, 400_000, "2.9 GB free on /var/lib/docker, 15.2 GB are needed for a:1 (4.1 GB compressed and "),
        (4_100_000_000, 2.7, 14_810_000, 400_000, "15.2 GB free on /var/lib/docker, 15.2 GB are needed"),
        (4_100_000_000, 2.7, 14_820_000, 400_000, None),
        (4_100_000_000, 1.5, 10_020_000, 400_000, None),  # a ratio of its own
        (4_100_000_000, 2.7, 50_000_000, 100_000, "100000 inodes free on /var/lib/docker, about 337829 are needed for a:1"),
        (4_100_000_000, 2.7, 50_000_000, None, None),  # btrfs counts none
        (4_100_000_000, 2.7, None, None, None),
    ],
)  # fmt: skip
def test_room(compressed: int, ratio: float, kib: int | None, inodes: int | None, says: str | None) -> None:
    found = lack_of_room([("a:1", compressed, ratio)], Disk(free_kib=kib, free_inodes=inodes), "/var/lib/docker")
    assert (found is None) if says is None else (found is not None and says in found and found.endswith("in gpu_docker_options"))


def test_room_for_several_images_is_that_of_all() -> None:
    disk = Disk(free_kib=5_000_000, free_inodes=None)
    assert lack_of_room([("a:1", 1_000_000_000, 2.7)], disk, "/") is None
    assert "for a:1, b:1" in str(lack_of_room([("a:1", 1_000_000_000, 2.7), ("b:1", 1_000_000_000, 2.7)], disk, "/"))


@pytest.mark.parametrize(
    ("requires", "driver", "gpu", "says"),
    [
        ([LIST], "550.144.03", "GeForce RTX 3090", "cuda>=12.8 (NVIDIA_REQUIRE_CUDA) for GeForce RTX 3090, and driver 550.144.03 gives"),
        ([LIST], "535.274.02", "A100 PCIe 80GB", None),
        ([LIST], "550.144.03", "A100 PCIe 80GB", "for A100 PCIe 80GB"),
        ([LIST], "570.211.01", "GeForce RTX 3090", None),
        ([LIST], "580.159.04", "H200 SXM 141GB", None),
        (["NVIDIA_REQUIRE_CUDA=cuda>=9.0"], "470.256.02", "Tesla T4", None),  # 11 is more than 9: numbers, not text
        (["NVIDIA_REQUIRE_CUDA=cuda>=12.10"], "580", "L4", None),
        (["NVIDIA_REQUIRE_ARCH=arch>=8.0"], "580", "Tesla T4", "requires arch>=8.0"),
        (["NVIDIA_REQUIRE_DRIVER=driver>=575.57.08"], "570.211.01", "L4", "requires driver>=575.57.08"),
        (["NVIDIA_REQUIRE_CUDA=cuda>=11.0", "NVIDIA_REQUIRE_JETPACK=csv-mounts=all"], "580", "L4", None),
        (["NVIDIA_REQUIRE_BRAND=brand!=geforce"], "580", "GeForce RTX 4090", "requires brand!=geforce"),
        (["PATH=/usr/bin", "NVIDIA_REQUIRE_CUDA="], "470", "L4", None),
        ([], "470", "L4", None),
    ],
)  # fmt: skip
def test_requirements(requires: list[str], driver: str, gpu: str, says: str | None) -> None:
    loaded = Loaded.of(driver, CATALOG)
    assert loaded is not None
    found = unmet(requires, loaded, gpus_called(gpu, CATALOG))
    assert (found is None) if says is None else (found is not None and says in found)


COMPAT = "LD_LIBRARY_PATH=/usr/local/cuda/compat:/usr/local/nvidia/lib64"


@pytest.mark.parametrize(
    ("environment", "driver", "is_wrong"),
    [
        ([COMPAT, "CUDA_VERSION=12.3.1"], "570.195.03", True),
        ([COMPAT, "CUDA_VERSION=12.8.0"], "570.195.03", True),  # not needed, and of another release than the driver
        ([COMPAT, "CUDA_VERSION=13.0.1"], "570.195.03", False),  # what it is for
        (["LD_LIBRARY_PATH=/usr/local/cuda-12.3/compat/lib.real:/x", "CUDA_VERSION=12.3.1"], "580", True),
        (["LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64", "CUDA_VERSION=12.3.1"], "580", False),
        ([COMPAT], "580", False),
        ([], "580", False),
    ],
)
def test_a_libcuda_of_the_images_own_that_is_older_than_the_driver(environment: list[str], driver: str, is_wrong: bool) -> None:
    loaded = Loaded.of(driver, CATALOG)
    assert loaded is not None
    found = own_libcuda(environment, loaded)
    assert (found is not None and "error 803" in found and "/compat" in found) is is_wrong


STREAM = """HTTP/1.0 200 OK
Content-Type: application/json

{"status":"Pulling from team/train","id":"7"}
{"status":"Pulling fs layer","progressDetail":{},"id":"aaaaaaaaaaaa"}
{"status":"Pulling fs layer","progressDetail":{},"id":"bbbbbbbbbbbb"}
{"status":"Already exists","progressDetail":{},"id":"cccccccccccc"}
{"status":"Downloading","progressDetail":{"current":1000,"total":4000},"progress":"[=\\u003e ] 1kB/4kB","id":"aaaaaaaaaaaa"}
{"status":"Downloading","progressDetail":{"current":500,"total":2000},"progress":"[=\\u003e ]","id":"bbbbbbbbbbbb"}
"""


def summed(tmp_path: Path, stream: str) -> dict[str, str]:
    subprocess.run(
        ["awk", "-v", f"folder={tmp_path}", SUMS], input=stream.replace("\n", "\r\n"), text=True, check=True, timeout=20
    )
    return {each.name: each.read_text().strip() for each in tmp_path.iterdir()}


def test_the_stream_of_a_pull_is_summed(tmp_path: Path) -> None:
    assert summed(tmp_path, STREAM) == {"progress": "3 1 1500 6000"}


def test_the_end_of_a_pull_and_a_layer_that_is_tried_again(tmp_path: Path) -> None:
    end = """{"status":"Retrying in 5 seconds","progressDetail":{},"id":"bbbbbbbbbbbb"}\n"""
    assert summed(tmp_path, STREAM + end)["progress"] == "3 1 1500 6000 Docker tries a layer again"
    end += """{"status":"Download complete","progressDetail":{},"id":"aaaaaaaaaaaa"}
{"status":"Downloading","progressDetail":{"current":2000,"total":2000},"id":"bbbbbbbbbbbb"}
{"status":"Extracting","progressDetail":{"current":100,"total":4000},"id":"aaaaaaaaaaaa"}
{"status":"Pull complete","progressDetail":{},"id":"aaaaaaaaaaaa"}
{"status":"Digest: sha256:12"}
{"status":"Status: Downloaded newer image for team/train:7"}
"""
    assert summed(tmp_path, STREAM + end) == {"progress": "3 2 6000 6000 unpacking", "result": "pulled"}


DOCKER = """[ "$1 $2" = "system dial-stdio" ] || exit 1
IFS= read -r request
cat "$STREAM"
sleep 20
"""


def test_progress_is_there_while_docker_goes_on(tmp_path: Path) -> None:
    """An awk may wait for its buffer to be full: mawk, of Debian and Ubuntu, does unless it is told not to."""
    folder, bin_ = tmp_path / "pull", tmp_path / "bin"
    for each in (folder, bin_):
        each.mkdir()
    (bin_ / "docker").write_text(f"#!/bin/sh\n{DOCKER}")
    (bin_ / "docker").chmod(0o755)
    (tmp_path / "stream").write_text(STREAM)
    os.mkfifo(folder / "in")
    environment = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}", "STREAM": str(tmp_path / "stream")}
    worker = subprocess.Popen(
        ["setsid", "sh", "-c", WORKER, "sh", str(folder), "/images/create", "60", SUMS], stdin=subprocess.PIPE, env=environment
    )
    assert worker.stdin is not None
    worker.stdin.write(b"\n")
    worker.stdin.close()
    try:
        deadline = time.monotonic() + 15
        while not (folder / "progress").exists() or not (folder / "progress").read_text().startswith("3 1 "):
            assert time.monotonic() < deadline and not (folder / "ended").exists(), "no progress before the end"
            time.sleep(0.05)
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(timeout=10)


@pytest.mark.parametrize(
    "stream",
    [
        STREAM + '{"errorDetail":{"message":"unexpected EOF"},"error":"unexpected EOF"}\n',
        'HTTP/1.0 404 Not Found\nContent-Length: 49\n\n{"message":"manifest unknown: manifest unknown"}\n',
    ],
)
def test_an_error_is_kept_as_docker_said_it(tmp_path: Path, stream: str) -> None:
    found = summed(tmp_path, stream)
    assert found["error"] == stream.splitlines()[-1] and "result" not in found


def test_progress_in_words() -> None:
    now = parse_progress("7 4 1200000000 3100000000 unpacking", 3_000_000_000)
    assert now == Progress(7, 4, 1_200_000_000, 3_000_000_000, "unpacking")
    assert host_line("a:1", now, 100e6) == "pulling a:1: 1.2 GB of 3.0 GB, 4 of 7 layers, 100.0 MB/s, 18 s left, unpacking"
    assert host_line("a:1", Progress(7, 4, 3_000_000_000, 3_000_000_000, "unpacking"), 90e6) == (
        "pulling a:1: 3.0 GB of 3.0 GB, 4 of 7 layers, unpacking"
    )
    assert parse_progress("", None) == Progress() and parse_progress("7 4 9 0", None).total is None
    assert host_line("a:1", Progress(), 0) == "pulling a:1: 0 kB, 0 of ? layers, 0 kB/s"


def test_many_hosts_are_one_line_that_names_who_is_behind() -> None:
    hosts = {f"gpu-{number}": Progress(7, 3, 500, 1000) for number in range(9)} | {"gpu-9": Progress(7, 1, 100, 1000)}
    assert fleet_line(hosts, 2, 8e8) == (
        "pulling on 10 hosts, 2 wait: 46% (5 kB of 10 kB), 28 of 70 layers, 800.0 MB/s together; behind: gpu-9 10%"
    )
    hosts |= {f"slow-{number}": Progress(7, 0, 0, 1000) for number in range(7)}
    assert fleet_line(hosts, 0, 0).endswith("; behind: slow-0 0%, slow-1 0%, slow-2 0%, slow-3 0%, slow-4 0% and 3 more")
