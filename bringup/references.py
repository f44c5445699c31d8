"""References of container images: what is one, and the several ways to write the same."""

from __future__ import annotations

import re
from typing import NamedTuple

# [host[:port]/]path[:tag][@sha256:digest], as the distribution project defines it
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?|\[[0-9a-fA-F:]+\](?::\d{1,5})?)"
REFERENCE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?")
HUB = ("docker.io/", "index.docker.io/", "registry-1.docker.io/")  # the registry that Docker takes where none is named


def is_reference(text: str) -> bool:
    return REFERENCE.fullmatch(text) is not None


def familiar(reference: str) -> str:
    """As `docker image ls` shows it: without Docker's own registry, by its digest where there is one, else with a tag."""
    for host in HUB:
        reference = reference.removeprefix(host)
    name, at, digest = reference.removeprefix("library/").partition("@")
    repository, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # the colon of a port
        repository, tag = name, "latest"
    return f"{repository}@{digest}" if at else f"{repository}:{tag}"


def without_digest(reference: str) -> str:
    """Repository and tag, as `docker image ls` shows them."""
    return familiar(reference.partition("@")[0])


class Parts(NamedTuple):
    """`docker.io`, `pytorch/pytorch`, `2.14.1-cuda13.2-cudnn9-runtime`, `sha256:…`. The tag is `latest` where neither is given."""

    registry: str
    repository: str
    tag: str | None
    digest: str | None

    @property
    def name(self) -> str:
        return f"{self.registry}/{self.repository}"

    @property
    def tagged(self) -> str | None:
        """With its tag alone: what a lock file calls it."""
        return f"{self.name}:{self.tag}" if self.tag else None


def parts(reference: str) -> Parts:
    """As Docker reads it: the first part is a registry where it has a dot or a port, or is localhost."""
    plain, _, digest = reference.partition("@")
    first, slash, rest = plain.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry, path = ("docker.io" if f"{first}/" in HUB else first), rest
    else:
        registry, path = "docker.io", plain
    repository, colon, tag = path.partition(":")
    if registry == "docker.io" and "/" not in repository:
        repository = f"library/{repository}"
    return Parts(registry, repository, tag if colon else None if digest else "latest", digest or None)
