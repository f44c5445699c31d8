"""Container images: looked at before anything is pulled, pulled by digest, kept."""

from __future__ import annotations

import json

from pyinfra import logger, state
from pyinfra.api import FunctionCommand, Host, State

from bringup import catalog
from bringup.errors import HostError
from bringup.images_lock import Inside, Locked, Platform
from bringup.inside import unfit
from bringup.policy.fit import Loaded
from bringup.pull_errors import one_line
from bringup.pulls import lack_of_room
from bringup.references import parts
from bringup.requirements import own_libcuda, unmet
from bringup.steps.images import archive_of, is_archived, missing_images
from bringup.steps.provenance import PULLED
from bringup.survey import Disk, Survey
from bringup.target import Target
from facts import live
from operations import shell
from operations.guard import Commands, host_operation
from operations.image_archive import check_file, load
from operations.image_inside import boards_of, look_inside
from operations.image_pull import pull
from operations.image_scripts import NOTE, ROOM, TAG
from operations.image_warmth import report
from operations.needed import needed
from operations.record import report_problem
from operations.registry import digests_of, engine, explained, known, login_body, with_digests


@host_operation
def images(target: Target) -> Commands:
    """Pull what is missing, by digest, after a look at all that can be known before the first byte."""
    target = with_digests(target)
    asked = [each for each in target.images if target.pulling.refresh and parts(each).digest is None]
    if needed("images", target) is None and not asked:
        return
    if not state.is_executing:
        for reference in missing_images(live.survey(), target) or target.images:
            yield FunctionCommand(_pulled, (reference, target, Locked("", "", {}), ""), {})
        return
    host, survey = live.current_host(), live.survey()
    pulled = [*asked, *(each for each in missing_images(survey, target) if not is_archived(each, target))]
    _refuse_dead_mirrors(host, pulled, target)
    for reference in pulled:
        known(host, reference, target.pulling, survey["arch"])
    target = with_digests(target)  # tags have become digests, of which one may be there already
    lacking = missing_images(survey, target)
    found = {each: known(host, each, target.pulling, survey["arch"]) for each in lacking if not is_archived(each, target)}
    files = _checked_files(target, lacking)
    if lacking:
        _refuse(host, survey, target, found, files)
    for reference, locked in found.items():
        yield FunctionCommand(_pulled, (reference, target, locked, survey["arch"]), {})
    for reference, (path, _) in files.items():
        yield FunctionCommand(_loaded, (reference, path, target), {})


def _checked_files(target: Target, lacking: list[str]) -> dict[str, tuple[str, int]]:
    """File and size of each image that comes from an archive. Raises HostError where one is not what it should be."""
    found = {}
    for reference in lacking:
        archive = archive_of(reference, target)
        if archive is not None:
            name, path = archive
            found[reference] = (path, check_file(path, reference, digests_of(name, target.pulling)))
    return found


def _refuse(host: Host, survey: Survey, target: Target, found: dict[str, Locked], files: dict[str, tuple[str, int]]) -> None:
    """What would end a pull half-way, or make it useless. Raises HostError."""
    arch, data = survey["arch"], catalog.load()
    boards = boards_of(survey)
    driver = Loaded.of(target.driver.wanted, data) if target.driver else None
    wanted = [
        (reference, size, 1.0) for reference, (_, size) in files.items()
    ]  # unpacked in a folder of Docker's, then as layers
    for reference, locked in found.items():
        if locked.platforms and arch not in locked.platforms:
            has = ", ".join(sorted(locked.platforms))
            raise HostError(f"{explained('no matching manifest', reference, target.pulling, arch).sentence}; it has {has}")
        platform = locked.platforms.get(arch, Platform())
        problem = unmet(platform.environment, driver, boards) if driver else None
        if problem is not None:
            raise HostError(f"{reference}: {problem}: name another image in gpu_images, or a newer driver in gpu_driver_branch")
        problem = unfit(parts(reference).tagged or reference, platform.inside, driver, boards, data) if driver else None
        if problem is not None:
            raise HostError(f"{problem}: name another image in gpu_images, or auto")
        libcuda = own_libcuda(platform.environment, driver) if driver else None
        if libcuda is not None:
            host.log(f"{reference}: {libcuda}: start it with LD_LIBRARY_PATH unset", logger.warning)
        recorded, ratio = target.pulling.sizes.get(reference, (None, data.default_unpack_ratio))
        size = platform.compressed_bytes or recorded
        wanted += [(reference, size, ratio)] if size is not None else []
    root, disk = _room(host)
    problem = lack_of_room(wanted, disk, root)
    if problem is not None:
        raise HostError(problem)
    _refuse_login(host, target, found)


def _refuse_login(host: Host, target: Target, found: dict[str, Locked]) -> None:
    """A registry that does not accept the login that it is given. Raises HostError."""
    for registry in sorted({parts(each).registry for each in found if parts(each).registry in target.pulling.logins}):
        reference = next(each for each in found if parts(each).registry == registry)
        answer = engine(host, "POST", "/auth", body=login_body(target.pulling, registry))
        if answer.status not in (200, 204):
            raise HostError(explained(answer.problem, reference, target.pulling, "").sentence)


def _refuse_dead_mirrors(host: Host, references: list[str], target: Target) -> None:
    """Docker passes over a mirror that is down in silence, and asks its own registry. Raises HostError."""
    if any(parts(each).registry == "docker.io" for each in references):
        for mirror in target.pulling.mirrors:
            answer = engine(host, "POST", "/auth", body=json.dumps({"serveraddress": mirror}))
            if answer.status not in (200, 204) and explained(answer.problem, mirror, target.pulling, "").kind == "network":
                raise HostError(
                    f"the mirror {one_line(mirror)} cannot be reached ({one_line(answer.problem)[-160:]}): start it, or take it out of "
                    "gpu_registry_mirrors"
                )


def _room(host: Host) -> tuple[str, Disk]:
    """Docker's root on the host, and what is free there. Raises HostError."""
    success, said = shell.run(host, ROOM)
    lines = dict(line.partition(" ")[::2] for line in said.splitlines())
    if not success or "root" not in lines:
        raise HostError(f"Docker does not say where its images lie ({said[-200:]}): see `journalctl -u docker` on the host")
    total, _, free = lines.get("inodes", "").partition(" ")
    counted = total.isdigit() and free.isdigit() and total != "0"  # btrfs counts none
    kib = lines.get("kib", "")
    return lines["root"], Disk(free_kib=int(kib) if kib.isdigit() else None, free_inodes=int(free) if counted else None)


def _pulled(state: State, host: Host, reference: str, target: Target, locked: Locked, arch: str) -> bool:
    shell.run(host, NOTE, PULLED, reference)
    problem = pull(host, reference, target.pulling, arch, locked.platforms.get(arch, Platform()).compressed_bytes)
    if problem is not None:
        report_problem(host, problem)
        return False
    image = parts(reference)
    if image.digest and image.tagged:
        shell.run(host, TAG, f"{image.name}@{image.digest}", image.tagged)
    return _ready(host, reference, target, locked.platforms.get(arch, Platform()).inside)


def _loaded(state: State, host: Host, reference: str, path: str, target: Target) -> bool:
    shell.run(host, NOTE, PULLED, reference)
    said = load(host, path)
    if said is not None:
        report_problem(host, f"Docker did not load {path} ({said}): make room, or save it again with docker save")
        return False
    return _ready(host, reference, target, Inside())


def _ready(host: Host, reference: str, target: Target, known: Inside) -> bool:
    """Whether an image that is there now can run here, and how quickly it starts."""
    problem = look_inside(host, reference, target, known)
    if problem is not None:
        report_problem(host, problem)
        return False
    if target.pulling.prewarm == "report":
        report(host, reference)
    return True
