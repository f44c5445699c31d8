"""Which images: curated ones that driver and GPUs can run, or what the user names."""

from __future__ import annotations

from bringup.catalog import Catalog, Gpu
from bringup.catalog.images import Image
from bringup.errors import nearest
from bringup.policy import Refused
from bringup.policy.fit import Fit, Loaded, fit, numbers
from bringup.policy.gpus import named
from bringup.references import without_digest
from bringup.settings import Settings

SHOWN = 6  # names in a message


def described(name: str, settings: Settings, catalog: Catalog) -> Image | None:
    """What is known of an image, the user's own facts first: by its name, or by a reference in any of the ways that Docker takes for it."""
    plain = without_digest(name)
    for each in (*settings.images_own.values(), *catalog.images):
        if name in (each.name, each.reference) or without_digest(each.reference) == plain:
            return each
    return None


def named_images(settings: Settings, catalog: Catalog) -> list[Image]:
    """Those of the settings of which something is known."""
    found = (described(each, settings, catalog) for each in settings.images if each != "auto")
    return [each for each in found if each is not None]


def named_fits(
    settings: Settings, catalog: Catalog, driver: Loaded, boards: tuple[Gpu, ...], arch: str
) -> list[tuple[Image, Fit]]:
    """Whether the images that are named can run. What is not known refuses nothing: it is a note."""
    return [(each, fit(each, driver, boards, arch, catalog)) for each in named_images(settings, catalog)]


def named_problem(settings: Settings, catalog: Catalog, driver: Loaded, boards: tuple[Gpu, ...], arch: str) -> str | None:
    """Why one of the images that are named cannot run."""
    return next((each.why for _, each in named_fits(settings, catalog, driver, boards, arch) if each.runs is False), None)


def choose_images(settings: Settings, catalog: Catalog, wanted: str, boards: tuple[Gpu, ...], arch: str) -> tuple[str, ...]:
    """Full references for a driver branch or version. Raises Refused."""
    return tuple(dict.fromkeys(_reference(name, settings, catalog, wanted, boards, arch) for name in settings.images))


def _reference(name: str, settings: Settings, catalog: Catalog, wanted: str, boards: tuple[Gpu, ...], arch: str) -> str:
    driver = Loaded.of(wanted, catalog)
    if name == "auto":
        return _newest_pytorch(catalog, wanted, boards, arch).pinned
    image = described(name, settings, catalog)
    if image is None:
        if "/" in name or ":" in name:
            return name
        fitting = [each for each in catalog.images if driver and fit(each, driver, boards, arch, catalog).runs]
        some = ", ".join(each.name for each in fitting[:SHOWN]) or "none that fits this host"
        way = f"name a full reference, or one of the catalog's ({some}{' …' if len(fitting) > SHOWN else ''})"
        known = (*settings.images_own, *(each.name for each in catalog.images))
        raise Refused("unknown-image", f"there is no curated image {name}{nearest(name, known)}", way)
    found = fit(image, driver, boards, arch, catalog) if driver is not None else None
    if found is not None and found.runs is False:
        raise Refused("image-not-for-host", found.why, "name another image in gpu_images, or auto")
    return name if "@" in name else image.pinned


def _newest_pytorch(catalog: Catalog, wanted: str, boards: tuple[Gpu, ...], arch: str) -> Image:
    """The newest official PyTorch image that fits; where there is none (arm64), NVIDIA's. Raises Refused."""
    driver = Loaded.of(wanted, catalog)
    fitting = [each for each in catalog.images if driver and fit(each, driver, boards, arch, catalog).runs]
    for family, flavour in (("pytorch", "runtime"), ("ngc", "devel")):
        found = [each for each in fitting if each.family == family and each.flavour == flavour]
        if found:
            return newest(found)
    why = f"no curated PyTorch image runs on {named(boards)} with driver {wanted} on {arch}"
    if driver is None:
        why = f"the branch of driver {wanted} is not in the catalog, so which image it runs is not known"
    raise Refused("no-image", why, "name one of your own in gpu_images")


def newest(images: list[Image]) -> Image:
    """By PyTorch's version, then by CUDA's."""
    return max(images, key=lambda each: (numbers(each.torch), numbers(each.cuda)))
