"""Steps of images: there, ready for a quick start, and old ones gone where that is asked for."""

from __future__ import annotations

from bringup.references import familiar, parts
from bringup.steps import Change, edited
from bringup.survey import Survey, known
from bringup.target import Target


def present(survey: Survey) -> set[str]:
    """The images on the host, each by its tag and by its digest."""
    return {familiar(each) for each in known(survey["docker"]["images"]) or []}


def missing_images(survey: Survey, target: Target) -> list[str]:
    have = present(survey)
    return [each for each in target.images if familiar(each) not in have]


def images(survey: Survey, target: Target) -> Change | None:
    """Every image of the target is on the host."""
    lacking = missing_images(survey, target)
    if not lacking:
        return None
    after = edited(survey)
    after["docker"]["images"] = [*(known(survey["docker"]["images"]) or []), *lacking]
    after["docker"]["pulled"] = [*after["docker"]["pulled"], *(each for each in lacking if each not in after["docker"]["pulled"])]
    loaded = [each for each in lacking if is_archived(each, target)]
    what = "load from archives" if loaded == lacking else "pull, and load from archives" if loaded else "docker pull"
    return Change(f"{', '.join(lacking)} not on the host", what, after)


def is_archived(reference: str, target: Target) -> bool:
    return archive_of(reference, target) is not None


def archive_of(reference: str, target: Target) -> tuple[str, str] | None:
    """(the reference as the settings have it, the file) where it comes from an archive."""
    wanted = familiar(reference.partition("@")[0])
    return next(
        ((name, path) for name, path in target.pulling.archives.items() if familiar(name.partition("@")[0]) == wanted), None
    )


def warm_name(reference: str) -> str:
    """What the image derived from this one is called: `gpu-bringup/pytorch-pytorch:2.14.1-cuda13.2-cudnn9-runtime-1a2b3c4d5e6f`."""
    image = parts(reference)
    digest = image.digest.removeprefix("sha256:")[:12] if image.digest else None
    return (
        f"gpu-bringup/{image.repository.replace('/', '-')}:{'-'.join(each for each in ((image.tag or '')[:100], digest) if each)}"
    )


def not_warm(survey: Survey, target: Target) -> list[str]:
    """The images without their derived one, where that is asked for."""
    have = present(survey)
    return [each for each in target.images if target.pulling.prewarm == "image" and familiar(warm_name(each)) not in have]


def image_prewarm(survey: Survey, target: Target) -> Change | None:
    """Every image has a derived one whose Python files are compiled: one without valid .pyc files pays seconds at each start."""
    cold = not_warm(survey, target)
    if not cold:
        return None
    after = edited(survey)
    after["docker"]["images"] = [*(known(survey["docker"]["images"]) or []), *map(warm_name, cold)]
    return Change(
        f"gpu_image_prewarm is image, and {', '.join(map(warm_name, cold))} not on the host", "compile and measure", after
    )


def old_images(survey: Survey, target: Target) -> Change | None:
    """What this project pulled and no longer wants goes, where that is asked for; what a container uses stays in any case."""
    if not target.pulling.prune:
        return None
    old = replaced(survey, target)
    used = {familiar(each["image"]) for each in known(survey["docker"]["running"]) or []}
    old = [each for each in old if not used & {familiar(each), familiar(each.partition("@")[0])}]
    if not old:
        return None
    after = edited(survey)
    gone = {familiar(name) for each in old for name in (each, each.partition("@")[0])}
    after["docker"]["images"] = [each for each in known(survey["docker"]["images"]) or [] if familiar(each) not in gone]
    return Change(f"{', '.join(old)} no longer wanted, and gpu_images_prune is true", "docker image rm", after)


def replaced(survey: Survey, target: Target) -> list[str]:
    """What this project pulled, is on the host, and is not of the target."""
    have, wanted = present(survey), {familiar(each) for each in target.images}
    return [each for each in survey["docker"]["pulled"] if familiar(each) in have and familiar(each) not in wanted]
