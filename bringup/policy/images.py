"""Which images: curated ones that driver and GPUs can run, or what the user names."""

from __future__ import annotations

from bringup import versions
from bringup.catalog import Branch, Catalog, Gpu
from bringup.catalog.images import Image
from bringup.policy import Refused
from bringup.policy.gpus import named
from bringup.references import without_digest
from bringup.settings import Settings, nearest

SHOWN = 6  # names in a message


def curated(name: str, catalog: Catalog) -> Image | None:
    """The catalog's record of an image, by its name or by a reference in any of the ways that Docker takes for the same image."""
    found = catalog.image(name)
    if found is not None:
        return found
    plain = without_digest(name)
    return next((each for each in catalog.images if without_digest(each.reference) == plain), None)


def named_problem(image: Image, branch: Branch, boards: tuple[Gpu, ...], arch: str) -> str | None:
    """Why an image that is named cannot run, as far as that is known: what was looked up nowhere refuses nothing."""
    return image.problem(branch, () if image.sm is None else boards, None if "architectures" in image.recalled else arch)


def named_images(settings: Settings, catalog: Catalog) -> list[Image]:
    """Those of the settings that the catalog knows."""
    found = (curated(each, catalog) for each in settings.images if each != "auto")
    return [each for each in found if each is not None]


def branch_of(wanted: str, catalog: Catalog) -> Branch | None:
    """The catalog's record for a branch or a version; None where it has none."""
    number = int(wanted) if wanted.isdigit() else versions.branch_or_none(wanted)
    return catalog.branch(number) if number is not None else None


def choose_images(settings: Settings, catalog: Catalog, wanted: str, boards: tuple[Gpu, ...], arch: str) -> tuple[str, ...]:
    """Full references for a driver branch or version. Raises Refused."""
    return tuple(dict.fromkeys(_reference(name, settings, catalog, wanted, boards, arch) for name in settings.images))


def _reference(name: str, settings: Settings, catalog: Catalog, wanted: str, boards: tuple[Gpu, ...], arch: str) -> str:
    branch = branch_of(wanted, catalog)
    fit = [each for each in catalog.images if branch and each.problem(branch, boards, arch) is None]
    if name == "auto":
        return _newest_pytorch(fit, catalog, wanted, boards, arch).pinned
    image = curated(name, catalog)
    if image is None:
        if "/" in name or ":" in name:
            return name
        names = tuple(each.name for each in catalog.images)
        some = ", ".join(each.name for each in fit[:SHOWN]) or "none that fits this host"
        way = f"name a full reference, or one of the catalog's ({some}{' …' if len(fit) > SHOWN else ''})"
        raise Refused("unknown-image", f"there is no curated image {name}{nearest(name, names)}", way)
    if branch is not None and (problem := named_problem(image, branch, boards, arch)):
        raise Refused("image-not-for-host", problem, "name another image in gpu_images, or auto")
    return name if "@" in name else image.pinned


def _newest_pytorch(fit: list[Image], catalog: Catalog, wanted: str, boards: tuple[Gpu, ...], arch: str) -> Image:
    """The newest official PyTorch image that fits; where there is none (arm64), NVIDIA's. Raises Refused."""
    for family, flavour in (("pytorch", "runtime"), ("ngc", "devel")):
        found = [each for each in fit if each.family == family and each.flavour == flavour]
        if found:
            return newest(found)
    why = f"no curated PyTorch image runs on {named(boards)} with driver {wanted} on {arch}"
    if branch_of(wanted, catalog) is None:
        why = f"the branch of driver {wanted} is not in the catalog, so which image it runs is not known"
    raise Refused("no-image", why, "name one of your own in gpu_images")


def newest(images: list[Image]) -> Image:
    """By PyTorch's version, then by CUDA's."""

    def numbers(text: str | None) -> tuple[int, ...]:
        return tuple(int(part) for part in (text or "0").split("+")[0].split(".") if part.isdigit())

    return max(images, key=lambda each: (numbers(each.torch), numbers(each.cuda)))
