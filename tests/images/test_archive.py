"""Archives of images: what Docker writes is taken, and everything else is one sentence before a byte is sent."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import tarfile
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bringup.errors import HostError
from operations.image_archive import Lines, check_file

TAG = "registry.example/train:7"
Files = dict[str, bytes]


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def saved(*, index: bool = True) -> tuple[Files, str, str]:
    """(files, image ID, manifest's digest) as docker save writes them; without an index as before Docker 25."""
    layer = b"a layer" * 100_000
    config = json.dumps({"architecture": "amd64", "rootfs": {"diff_ids": [f"sha256:{sha(layer)}"]}}).encode()
    names = (f"blobs/sha256/{sha(config)}", f"blobs/sha256/{sha(layer)}") if index else (f"{sha(config)}.json", "0a/layer.tar")
    listed = json.dumps([{"Config": names[0], "RepoTags": [TAG], "Layers": [names[1]]}]).encode()
    files = {"manifest.json": listed, names[0]: config, names[1]: layer}
    manifest = json.dumps({"config": {"digest": f"sha256:{sha(config)}"}, "layers": []}).encode()
    if index:
        files[f"blobs/sha256/{sha(manifest)}"] = manifest
        files["index.json"] = json.dumps({"manifests": [{"digest": f"sha256:{sha(manifest)}"}]}).encode()
    return files, f"sha256:{sha(config)}", f"sha256:{sha(manifest)}"


def written(folder: Path, files: Files) -> Path:
    path = folder / "train.tar"
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize("index", [True, False])
def test_what_docker_saves_is_taken_by_its_tag_its_id_and_its_digest(tmp_path: Path, index: bool) -> None:
    files, image_id, digest = saved(index=index)
    path = written(tmp_path, files)
    assert check_file(str(path), TAG, ()) == path.stat().st_size
    check_file(str(path), f"{TAG}@sha256:{'0' * 64}", {image_id})
    if index:
        check_file(str(path), TAG, {digest})
    path.write_bytes(gzip.compress(path.read_bytes()))
    check_file(str(path), TAG, {image_id})


def listed(text: bytes | None) -> Callable[[Files], Files]:
    """With another manifest.json, or without one."""

    def change(files: Files) -> Files:
        others = {name: content for name, content in files.items() if name != "manifest.json"}
        return others if text is None else {**others, "manifest.json": text}

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (listed(None), "(an OCI layout alone): write it with docker save"),
        (lambda files: {"README": b"hello"}, "(no manifest.json in it)"),
        (listed(b"[{"), "is no archive of an image"),
        (listed(b'[{"Config": "x", "RepoTags": ["a:1", "b:2"]}]'), "holds a:1, b:2, and not reg"),
        (listed(b'[{"Config": "x", "RepoTags": null, "Layers": []}]'), "images without a name"),
        (lambda files: {**files, next(each for each in files if len(files[each]) > 100_000): b"b layer"}, "is damaged (blobs/sha256/"),
        (lambda files: {each: content for each, content in files.items() if len(content) < 100_000}, "is missing): save it again"),
    ],
)  # fmt: skip
def test_what_is_none_is_one_sentence(tmp_path: Path, change: Callable[[Files], Files], says: str) -> None:
    path = written(tmp_path, change(saved()[0]))
    with pytest.raises(HostError) as caught:
        check_file(str(path), TAG, ())
    assert says in str(caught.value) and "\n" not in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["manifest.json", "index.json", "config"])
@pytest.mark.parametrize(
    "value",
    [None, 1, "x", [1], [None], {}, {"manifests": 1}, {"manifests": [{}]}, {"rootfs": 1}, [{"RepoTags": [TAG], "Config": 1}]],
)
def test_lists_of_another_shape_are_one_sentence(tmp_path: Path, name: str, value: object) -> None:
    files, image_id, _ = saved()
    name = f"blobs/sha256/{image_id[7:]}" if name == "config" else name
    path = written(tmp_path, {**files, name: json.dumps(value).encode()})
    with pytest.raises(HostError) as caught:
        check_file(str(path), TAG, ())
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_an_entry_that_is_no_file_is_not_followed(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "link.tar"
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("manifest.json")
        entry.type, entry.linkname = kind, "/etc/passwd"
        tar.addfile(entry)
    with pytest.raises(HostError, match=r"is no archive of an image|is damaged"):
        check_file(str(path), TAG, ())


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_a_packed_file_with_a_wrong_byte_is_noticed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = written(tmp_path, saved()[0])
    packed = bytearray(pack(path.read_bytes()))
    packed[len(packed) // 2] ^= 0xFF
    path.write_bytes(packed)
    with pytest.raises(HostError, match=r"is no archive of an image|is damaged") as caught:
        check_file(str(path), TAG, ())
    assert "\n" not in str(caught.value)


def test_another_image_than_is_wanted(tmp_path: Path) -> None:
    path = written(tmp_path, saved()[0])
    with pytest.raises(
        HostError, match=r"holds registry.example/train:7 as sha256:\w+, and sha256:0+ is wanted: nothing was loaded"
    ):
        check_file(str(path), TAG, {f"sha256:{'0' * 64}"})


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_truncated_file_is_noticed(tmp_path: Path, pack: Any, share: float) -> None:
    path = written(tmp_path, saved()[0])
    content = pack(path.read_bytes().rstrip(b"\0"))
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(HostError, match=r"is no archive of an image|is damaged|no archive that every"):
        check_file(str(path), TAG, ())


@pytest.mark.parametrize(("content", "says"), [(b"", "is no"), (b"<html>not found</html>" * 99, "it is no tar file")])
def test_a_file_that_is_no_archive(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    with pytest.raises(HostError, match=says):
        check_file(str(path), TAG, ())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"cannot be read \(No such file or directory\): name a file on this machine"):
        check_file(str(tmp_path / "gone.tar"), TAG, ())


def test_a_file_is_sent_whole_and_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(range(256)) * 1000)
    lines = Lines(path)
    assert isinstance(lines, list) and len(lines) == 5 and b"".join(map(b64decode, lines)) == path.read_bytes()
