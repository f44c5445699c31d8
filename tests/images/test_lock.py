"""images.lock.yml: what is written is read again, and what is none is one sentence."""

from __future__ import annotations

import pytest

from bringup.errors import UserError
from bringup.images_lock import Locked, Platform, lock_text, parse_lock, pin
from bringup.references import parts

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
NAME = "docker.io/pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime"


def test_what_is_written_is_read_again() -> None:
    entries = {
        NAME: Locked(
            A, "2026-12-01", {"x86_64": Platform(3_000_000_000, B, ("NVIDIA_REQUIRE_CUDA=cuda>=13.0",)), "aarch64": Platform()}
        ),
        "nvcr.io/nvidia/pytorch:26.05-py3": Locked(B, "2026-12-01", {}),
    }
    text = lock_text(entries)
    assert text.startswith("# Written by gpu-bringup") and parse_lock(text, "images.lock.yml") == entries
    assert lock_text(dict(reversed(entries.items()))) == text


def test_an_empty_file_is_an_empty_lock() -> None:
    assert parse_lock("", "x") == parse_lock("schema: 1\n", "x") == parse_lock("schema: 1\nimages: {}\n", "x") == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("schema: 2\nimages: {}", "x.yml has schema 2, this version reads 1"),
        ("schema: '1'", "has schema '1'"),
        ("images: {}", "names no schema"),
        ("[1, 2]", "is no lock file of images"),
        ("schema: [1", "is no YAML (line 1)"),
        ("schema: 1\nimages: [a]", "images must be a mapping"),
        ("schema: 1\nimages: {pytorch: {digest: x}}", "'pytorch' is no reference with registry and tag"),
        (f"schema: 1\nimages: {{'{NAME}': {{digest: sha256:12}}}}", f"{NAME} has the digest 'sha256:12'"),
        (f"schema: 1\nimages: {{'{NAME}': sha256:12}}", "has the digest 'sha256:12'"),
        (f"schema: 1\nimages: {{'{NAME}': {{digest: {A!r}, platforms: [x]}}}}", "platforms must be a mapping"),
        (f"schema: 1\nimages: {{'{NAME}': {{digest: {A!r}, resolved: 2026-13-45}}}}", "is no YAML"),
        ("<<<<<<< HEAD\nschema: 1\n", "is no YAML (line 2)"),
    ],
)  # fmt: skip
def test_what_is_no_lock_file_is_one_sentence(text: str, says: str) -> None:
    with pytest.raises(UserError, match=r"(?s).*") as caught:
        parse_lock(text, "x.yml")
    assert says in str(caught.value) and "\n" not in str(caught.value) and "x.yml" in str(caught.value)


@pytest.mark.parametrize("field", ["compressed_bytes", "image_id", "environment", "inside"])
@pytest.mark.parametrize("value", ["7.5", "x", "true", "[1]", "{a: 1}", "null"])
def test_what_only_saves_time_may_be_anything(field: str, value: str) -> None:
    text = f"schema: 1\nimages: {{'{NAME}': {{digest: {A!r}, platforms: {{x86_64: {{{field}: {value}}}}}}}}}"
    assert parse_lock(text, "x")[NAME].digest == A


@pytest.mark.parametrize(
    ("reference", "pinned"),
    [
        ("pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime", f"pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime@{A}"),
        (NAME, f"{NAME}@{A}"),
        (f"{NAME}@{B}", f"{NAME}@{B}"),
        ("ubuntu", f"ubuntu:latest@{B}"),
        ("registry.example:5000/train", "registry.example:5000/train"),
    ],
)
def test_a_tag_gets_the_digest_that_it_is_locked_to(reference: str, pinned: str) -> None:
    assert pin(reference, {NAME: A, "docker.io/library/ubuntu:latest": B}) == pinned


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("ubuntu", ("docker.io", "library/ubuntu", "latest", None)),
        ("index.docker.io/nvidia/cuda:13", ("docker.io", "nvidia/cuda", "13", None)),
        ("localhost/a:1", ("localhost", "a", "1", None)),
        ("registry:5000/team/a", ("registry:5000", "team/a", "latest", None)),
        (f"registry.example/a:1@{A}", ("registry.example", "a", "1", A)),
        (f"team/a@{A}", ("docker.io", "team/a", None, A)),
    ],
)
def test_parts(reference: str, found: tuple[str, str, str | None, str | None]) -> None:
    assert parts(reference) == found
