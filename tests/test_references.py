"""Names of images: what is one, and that the ways to write one are one."""

from __future__ import annotations

import pytest

from bringup.references import familiar, is_reference, without_digest

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    "text",
    ["auto", "pytorch-2.14.1-cuda13.2", "ubuntu", "ubuntu:24.04", "team/train", "registry.example:5000/team/train:7", "localhost/x",
     f"registry.example/train@{DIGEST}", f"train:7@{DIGEST}", "[fd00::1]:5000/train", "a__b/c---d"],
)  # fmt: skip
def test_names_of_images(text: str) -> None:
    assert is_reference(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "Train", "team/Train", "train:", "train:7:8", "train@sha256:0f", f"train@{DIGEST}0", "https://registry.example/train", "a b",
     "train\n", "team//train", "/train", "train/", "-train", "train:-7", "$(id)"],
)  # fmt: skip
def test_what_is_no_name_of_an_image(text: str) -> None:
    assert not is_reference(text)


SAME = [
    ("ubuntu", "ubuntu:latest"), ("docker.io/library/ubuntu:24.04", "ubuntu:24.04"), ("index.docker.io/a/b:2", "a/b:2"),
    ("registry.example:5000/train", "registry.example:5000/train:latest"), (f"docker.io/a/b:1@{DIGEST}", f"a/b@{DIGEST}"),
    (f"registry.example:5000/train@{DIGEST}", f"registry.example:5000/train@{DIGEST}"), ("nvcr.io/nvidia/pytorch:26.05-py3",) * 2,
]  # fmt: skip


@pytest.mark.parametrize(("given", "shown"), SAME, ids=[given for given, _ in SAME])
def test_as_docker_lists_it(given: str, shown: str) -> None:
    assert familiar(given) == shown and familiar(shown) == shown


def test_without_its_digest() -> None:
    assert without_digest(f"docker.io/pytorch/pytorch:2@{DIGEST}") == "pytorch/pytorch:2"
