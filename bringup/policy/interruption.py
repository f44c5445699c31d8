"""What a plan would end on a host that is in use, and whether there is room for what it brings. Raises Refused."""

from __future__ import annotations

from collections.abc import Iterable

from bringup.policy import Refused
from bringup.steps.docker import daemon_change, in_swarm
from bringup.steps.images import missing_images
from bringup.survey import Survey, known
from bringup.target import Target

DRIVER_KIB = 3 << 20  # driver set, compiler and headers unpacked, with what apt downloads: 2.2 GiB seen, rounded up
DOCKER_KIB = 1 << 20
MIN_INODES = 200_000  # an image of PyTorch's has about 60,000 files, and is there twice while it is unpacked


def refuse_interruption(survey: Survey, target: Target, steps: Iterable[str]) -> None:
    """Containers of the user's that a reboot or an unprotected restart of Docker would end."""
    planned = set(steps)
    processes = known(survey["driver"]["processes"]) or []
    if processes and planned & {"driver-packages", "runfile-out"}:
        reason = f"the driver would be changed under GPU processes ({'; '.join(processes)})"
        raise Refused("gpu-in-use", reason, "drain the host first: new libraries with the old module end every CUDA program")
    running = known(survey["docker"]["running"]) or []
    if not running or "stop-containers" in target.accepted:
        return
    names = ", ".join(each["name"] for each in running)
    if "reboot" in planned and target.reboot == "if-idle":
        way = "stop them, or set gpu_reboot to never for all but the reboot"
        raise Refused("containers-running", f"a reboot is needed and would end {names}", way, "stop-containers")
    if "driver-packages" in planned and known(survey["driver"]["loaded_version"]) is not None:
        way = "drain the host first: new libraries with the old module end every CUDA program"
        raise Refused("gpu-in-use", f"the driver would be changed under {names}", way, "stop-containers")
    if "daemon-json" in planned:
        change = daemon_change(survey, target)
        if change and change.restart and change.ends:
            drain = "drain this node of the swarm first (docker node update --availability drain), or "
            way = f"{drain if in_swarm(known(survey['docker']['info']) or {}) else ''}stop them"
            reason = f"Docker must be restarted and would end {', '.join(change.ends)}, {change.ends_why}"
            raise Refused("containers-running", reason, way, "stop-containers")


def refuse_lack_of_room(survey: Survey, target: Target, steps: Iterable[str]) -> None:
    """Too little disk for what would be installed and pulled. Sizes that are not known are not judged."""
    planned = set(steps)
    needed: dict[str, int] = {}
    root, docker = "/", _mount(survey, str((known(survey["docker"]["info"]) or {}).get("DockerRootDir") or "/var/lib/docker"))
    if "driver-packages" in planned:
        needed[root] = needed.get(root, 0) + DRIVER_KIB
    if "docker-engine" in planned:
        needed[root] = needed.get(root, 0) + DOCKER_KIB
    if "images" in planned:
        needed[docker] = needed.get(docker, 0) + sum(_image_kib(each, target) for each in missing_images(survey, target))
    for mount, kib in needed.items():
        disk = survey["disks"].get(mount)
        if disk is None or disk["free_kib"] is None:
            continue
        if disk["free_kib"] < kib:
            have = f"{disk['free_kib'] / (1 << 20):.1f} GiB free on {mount}, {kib / (1 << 20):.1f} GiB are needed"
            raise Refused("no-room", have, "make room, or give Docker another data-root in gpu_docker_options")
        if mount == docker and "images" in planned and disk["free_inodes"] is not None and disk["free_inodes"] < MIN_INODES:
            have = f"{disk['free_inodes']} inodes free on {mount}, {MIN_INODES} are needed for an image"
            raise Refused("no-room", have, "remove small files, or give Docker another data-root in gpu_docker_options")


def _mount(survey: Survey, path: str) -> str:
    """The mount point that the folder lies on, of those that were looked at."""
    fits = [each for each in survey["disks"] if path == each or path.startswith(each.rstrip("/") + "/")]
    return max(fits, key=len, default="/")


def _image_kib(reference: str, target: Target) -> int:
    """Compressed and unpacked: both are on the disk while it is pulled. 0 where its size is not known: the registry tells it later."""
    compressed, ratio = target.pulling.sizes[reference]
    return int(compressed * (1 + ratio)) // 1024 if compressed is not None else 0
