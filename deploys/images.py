"""Container images, and the host's record of all that was done to it."""

from bringup.target import Target
from deploys.frame import stage
from operations import image
from operations.image_prune import old_images
from operations.image_warmth import image_prewarm
from operations.provenance import provenance


def images(target: Target) -> None:
    image.images(name="images", target=target)
    image_prewarm(name="image-prewarm", target=target)
    old_images(name="old-images", target=target)
    provenance(name="provenance", target=target)


stage(images)
