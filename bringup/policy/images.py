"""Which images: curated ones that driver and GPUs can run, or what the user names."""

from __future__ import annotations

from bringup.catalog import Branch, Catalog, Gpu
from bringup.catalog.images import Image
from bringup.policy import Refused
from bringup.settings import Settings


def named_images(settings: Settings, catalog: Catalog) -> list[Image]:
    """Those of the settings that the catalog knows, by name or by reference."""
    found = (catalog.image(each) for each in settings.images if each != "auto")
    return [each for each in found if each is not None]


def image_problem(image: Image, branch: Branch, boards: tuple[Gpu, ...], arch: str) -> str | None:
    """Why this image cannot run on these GPUs with this branch, or None."""
    return image.problem(branch, boards, arch)


def choose_images(
    settings: Settings, catalog: Catalog, branch: Branch | None, boards: tuple[Gpu, ...], arch: str
) -> tuple[str, ...]:
    """Full references. `auto`: the newest curated PyTorch image that driver and GPUs can run. Raises Refused."""
    found = []
    for name in settings.images:
        image = catalog.image(name) if name != "auto" else None
        if image is not None and branch is not None and (problem := image_problem(image, branch, boards, arch)):
            raise Refused("image-not-for-host", problem, "name another image, or `auto`")
        if image is None and name != "auto" and "/" not in name and ":" not in name:
            fit = ", ".join(each.name for each in catalog.images if branch and image_problem(each, branch, boards, arch) is None)
            raise Refused(
                "unknown-image", f"there is no curated image {name}", f"name a full reference, or one of {fit or 'none'}"
            )
        if name == "auto":
            fit_images = [each for each in catalog.images if each.family == "pytorch" and each.flavour == "runtime" and branch
                          and image_problem(each, branch, boards, arch) is None]  # fmt: skip
            if not fit_images:
                why = f"no curated PyTorch image runs on {', '.join(sorted(each.name for each in boards))} with this driver"
                raise Refused("no-image", why, "name one of your own in gpu_images")
            image = newest(fit_images)
        found.append(image.pinned if image else name)
    return tuple(found)


def newest(images: list[Image]) -> Image:
    """By PyTorch's version, then by CUDA's."""

    def numbers(text: str | None) -> tuple[int, ...]:
        return tuple(int(part) for part in (text or "0").split("+")[0].split(".") if part.isdigit())

    return max(images, key=lambda each: (numbers(each.torch), numbers(each.cuda)))
