"""Which images: curated ones that driver and GPUs can run, or what the user names."""

from __future__ import annotations

from collections.abc import Mapping

from bringup.catalog import Catalog, Gpu
from bringup.catalog.images import Image
from bringup.errors import nearest
from bringup.images_lock import pin
from bringup.policy import Refused
from bringup.policy.fit import Fit, Loaded, fit, numbers
from bringup.policy.gpus import named
from bringup.references import without_digest
from bringup.settings import Settings
from bringup.target import Pulling

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


def choose_images(
    settings: Settings, catalog: Catalog, wanted: str, boards: tuple[Gpu, ...], arch: str, locked: Mapping[str, str]
) -> tuple[str, ...]:
    """Full references for a driver branch or version, tags with the digest that they are locked to. Raises Refused.

    What is loaded from an archive has no digest on the host: Docker knows that only of what it has pulled.
    """
    found = []
    archived = {without_digest(each) for each in _archives(settings, catalog)}
    for name in settings.images:
        reference = _reference(name, settings, catalog, wanted, boards, arch)
        is_archived = without_digest(reference) in archived
        found.append(reference.partition("@")[0] if is_archived else pin(reference, locked))
    return tuple(dict.fromkeys(found))


def _archives(settings: Settings, catalog: Catalog) -> dict[str, str]:
    """By reference."""
    return {
        image.pinned if (image := described(name, settings, catalog)) and "@" not in name else name: path
        for name, path in settings.images_archive.items()
    }


def how_pulled(settings: Settings, catalog: Catalog, images: tuple[str, ...]) -> Pulling:
    """What the settings say of pulls, and the sizes of these images as far as they are known."""
    sizes = {}
    for reference in images:
        image = described(reference, settings, catalog)
        ratio = image.unpack_ratio if image and image.unpack_ratio else catalog.default_unpack_ratio
        sizes[reference] = (image.compressed_bytes if image else None, ratio)
    return Pulling(
        lock=settings.images_lock,
        refresh=settings.images_refresh,
        archives=_archives(settings, catalog),
        prune=settings.images_prune,
        prewarm=settings.image_prewarm,
        parallel=settings.pull_parallel,
        logins=settings.registry_login,
        mirrors=settings.registry_mirrors,
        insecure=settings.insecure_registries,
        sizes=sizes,
    )


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
