"""Archives of images (`docker save`): checked piece by piece, whatever their size, and sent to a host as they are read."""

from __future__ import annotations

import hashlib
import json
import lzma
import tarfile
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pyinfra.api import Host
from typing_extensions import override

from bringup.errors import HostError
from bringup.references import familiar
from operations import shell

PIECE = 1 << 20
MAX_JSON = 8 << 20
LINE = 57 << 10  # bytes a line of base64: 76 KiB of it
LOAD_LIMIT_S = 4 * 3600

# What is sent is read to its end in any case: a pipe that breaks would hide why Docker did not want it.
LOAD = r"""
base64 -d | { docker load --quiet 2>&1; code=$?; cat >/dev/null; exit $code; }
"""


class Lines(list[str]):
    """A file as lines of base64, read while they are sent: pyinfra wants a list, and goes through it once."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    @override
    def __iter__(self) -> Iterator[str]:
        with self._path.open("rb") as file:
            while piece := file.read(LINE):
                yield b64encode(piece).decode()

    @override
    def __len__(self) -> int:
        return -(-self._path.stat().st_size // LINE)


def load(host: Host, path: str) -> str | None:
    """None when Docker on the host has loaded it, else why not."""
    success, said = shell.run(host, LOAD, timeout_s=LOAD_LIMIT_S, stdin=Lines(Path(path)))
    return None if success else said[-300:] or "it said nothing"


def check_file(path: str, reference: str, digests: Iterable[str]) -> int:
    """The archive's size in bytes. Raises HostError: check_archive's, or when it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            check_archive(file, path, reference, digests)
        return Path(path).stat().st_size
    except OSError as error:
        raise HostError(f"{path} of gpu_images_archive cannot be read ({error.strerror}): name a file on this machine") from None


def check_archive(file: BinaryIO, path: str, reference: str, digests: Iterable[str]) -> None:
    """Raises HostError with one sentence where `docker load` could not, or should not, load this file for the reference.

    + digests: one of them must be the image's: its index's, its manifest's, or its own (docker's image ID); none: any will do
    """
    try:
        with tarfile.open(fileobj=file, mode="r:*") as tar:
            _check(tar, path, reference, tuple(digests))
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        words = str(error).partition("\n")[0].rstrip(":")
        is_cut = isinstance(error, zlib.error | lzma.LZMAError) or "unexpected end" in words or "end-of-stream" in words
        what = "it is cut off or damaged" if is_cut else f"it is no tar file: {words}"
    except (LookupError, TypeError, AttributeError) as error:  # its lists hold something else than Docker writes
        what = f"its lists are not as Docker writes them: {type(error).__name__} {error}"
    else:
        return
    raise HostError(f"{path} is no archive of an image ({what}): save it again with docker save, nothing was loaded")


def _check(tar: tarfile.TarFile, path: str, reference: str, digests: tuple[str, ...]) -> None:
    members = {each.name.removeprefix("./"): each for each in tar}
    if "manifest.json" not in members:
        what = "an OCI layout alone" if "index.json" in members else "no manifest.json in it"
        raise HostError(
            f"{path} is no archive that every Docker can load ({what}): write it with docker save, or skopeo to docker-archive"
        )
    images = _json(tar, members, "manifest.json", path)
    wanted = familiar(reference.partition("@")[0])
    named = {familiar(tag): each for each in images for tag in each.get("RepoTags") or []}
    if wanted not in named:
        holds = ", ".join(sorted(named)) or "images without a name"
        raise HostError(f"{path} holds {holds}, and not {wanted}: name the right file in gpu_images_archive, nothing was loaded")
    image = named[wanted]
    own = _verified(tar, members, image["Config"], None, path)
    ids = json.loads(_read(tar, members, image["Config"], path))["rootfs"]["diff_ids"]
    if len(ids) != len(image["Layers"]):
        raise HostError(f"{path} is damaged (it lists {len(image['Layers'])} layers, its image has {len(ids)}): save it again")
    for layer, diff_id in zip(image["Layers"], ids, strict=True):
        _verified(tar, members, layer, diff_id, path)
    found = {own, *_index(tar, members, path)}
    if digests and not found & set(digests):
        raise HostError(f"{path} holds {wanted} as {own}, and {' or '.join(digests)} is wanted: nothing was loaded")


def _index(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], path: str) -> set[str]:
    """The digests of manifests and indexes, each held against its content."""
    found: set[str] = set()
    waiting = [each["digest"] for each in _json(tar, members, "index.json", path)["manifests"]] if "index.json" in members else []
    while waiting:
        digest = str(waiting.pop())
        name = f"blobs/{digest.replace(':', '/')}"
        if digest in found or name not in members:  # other platforms may be left out
            continue
        found.add(_verified(tar, members, name, None, path))
        waiting += [each["digest"] for each in _json(tar, members, name, path).get("manifests", [])]
    return found


def _verified(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], name: str, digest: str | None, path: str) -> str:
    """The digest of a file of the archive, which its own name or `digest` must be."""
    stem = name.removeprefix("blobs/sha256/").removesuffix(".json")
    expected = f"sha256:{stem}" if len(stem) == 64 else digest
    if name in members and members[name].issym() and digest is not None:  # an older docker save links layers that are the same
        return digest
    hashed = hashlib.sha256()
    opened = tar.extractfile(members[name]) if name in members else None
    if opened is None:
        raise HostError(f"{path} is damaged ({name} is missing): save it again, nothing was loaded")
    while piece := opened.read(PIECE):
        hashed.update(piece)
    found = f"sha256:{hashed.hexdigest()}"
    if expected is not None and found != expected:
        raise HostError(f"{path} is damaged ({name} is {found}, and not {expected}): save it again, nothing was loaded")
    return found


def _read(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], name: str, path: str) -> bytes:
    opened = tar.extractfile(members[name]) if name in members else None
    if opened is None or members[name].size > MAX_JSON:
        raise HostError(f"{path} is damaged ({name} is missing or too large): save it again, nothing was loaded")
    return opened.read()


def _json(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], name: str, path: str) -> Any:
    return json.loads(_read(tar, members, name, path))
