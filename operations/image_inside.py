"""Once an image is there: what is the image's torch built for? One that cannot run here goes again, and the lock file tells the others."""

from __future__ import annotations

import json

from pyinfra.api import Host

from bringup import catalog, probes
from bringup.catalog import Gpu
from bringup.images_lock import Inside
from bringup.inside import found_inside, in_words, unfit
from bringup.policy.fit import Loaded
from bringup.policy.gpus import candidates_of
from bringup.references import familiar, parts
from bringup.survey import Survey, gpus
from bringup.target import Target
from facts import live
from operations import shell
from operations.image_prune import REMOVE
from operations.record import RUN
from operations.registry import learned

LIMIT_S = 400  # torch from a cold disk takes a minute; cuobjdump, where torch does not tell, some minutes

# $1 image, $2 seconds; stdin: the probe
INSPECT = r"""
name=gpu-bringup-inside-$$
trap 'docker rm -f "$name" >/dev/null 2>&1' EXIT
timeout "$2" docker run --rm -i --name "$name" --runtime runc --network none --pull never --entrypoint python3 "$1" - 2>/dev/null
"""


def boards_of(survey: Survey) -> tuple[Gpu, ...]:
    """The models of the host's GPUs, each once."""
    data = catalog.load()
    return tuple({one.name: one for each in gpus(survey) for one in candidates_of(each, data)}.values())


def look_inside(host: Host, reference: str, target: Target, known: Inside) -> str | None:
    """None where the image can run here, or nobody can tell; else why not, after its removal."""
    if target.driver is None:
        return None
    survey, data = live.survey(), catalog.load()
    inside = known if known.code else _inspected(host, reference)
    if inside is None:
        return None
    driver, name = Loaded.of(target.driver.wanted, data), parts(reference).tagged or reference
    if not known.code:
        learned(host, reference, inside, target.pulling, survey["arch"])
        host.log(f"{name}: {in_words(inside)}")
    problem = unfit(name, inside, driver, boards_of(survey), data) if driver else None
    if problem is None:
        return None
    shell.run(host, REMOVE, familiar(reference), familiar(str(parts(reference).tagged or reference)))
    return f"{problem}, and was removed again: name another image in gpu_images, or auto"


def _inspected(host: Host, reference: str) -> Inside | None:
    """None where the image has no Python, or the probe found nothing."""
    given = familiar(reference), str(LIMIT_S)
    success, said = shell.run(host, INSPECT, *given, timeout_s=LIMIT_S + 30, stdin=[probes.source("image_code")])
    try:
        value = json.loads(said.splitlines()[-1]) if success else None
    except (ValueError, LookupError):
        return None
    RUN.of(host.name).measured.setdefault("image_code", {})[reference] = value
    return found_inside(value)
