"""What is said of an image's start."""

from __future__ import annotations

import json

import pytest

from bringup.steps.images import warm_name
from facts.images import ImageWarmth, Warmth
from operations.image_warmth import in_words

COLD = Warmth(module="torch", modules=1234, valid=12, stale=22, missing=1200, import_s=[4.46, 4.5], failed=None)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (COLD, "import torch takes 4.46 s, 1222 of 1234 modules have no valid .pyc file"),
        ({**COLD, "docker_run_s": 6.25}, "import torch takes 4.46 s (6.25 s with all of docker run), 1222 of 1234"),
        ({**COLD, "stale": 0, "missing": 0, "import_s": [1.7]}, "import torch takes 1.70 s, all its .pyc files are valid"),
        ({"failed": "RuntimeError: no torch"}, "its start could not be measured (RuntimeError: no torch)"),
    ],
)
def test_in_words(found: Warmth, words: str) -> None:
    assert words in in_words(found)


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        (
            "docker.io/pytorch/pytorch:2.14-runtime@sha256:" + "1a2b3c4d5e6f" + "0" * 52,
            "gpu-bringup/pytorch-pytorch:2.14-runtime-1a2b3c4d5e6f",
        ),
        ("registry.example:5000/train", "gpu-bringup/train:latest"),
        ("team/a@sha256:" + "9" * 64, "gpu-bringup/team-a:999999999999"),
        ("a/b:" + "x" * 128 + "@sha256:" + "9" * 64, "gpu-bringup/a-b:" + "x" * 100 + "-999999999999"),
    ],
)
def test_the_derived_image_is_named_by_its_origin(reference: str, name: str) -> None:
    assert warm_name(reference) == name


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ([json.dumps(COLD), "6.250"], {**COLD, "docker_run_s": 6.25}),
        ([json.dumps(COLD)], {**COLD, "docker_run_s": None}),
        (["problem no image is named, and /etc/x names none"], {"failed": "no image is named, and /etc/x names none"}),
        (["problem docker: No such image: a:1. ", ""], {"failed": "docker: No such image: a:1."}),
        (['problem docker: Error response from daemon: failed to create task: exec: "python3": executable file not found in $PATH'],
         {"failed": "it has no python3"}),
        ([], {"failed": "it said nothing"}),
    ],
)  # fmt: skip
def test_the_fact(output: list[str], found: dict[str, object]) -> None:
    assert ImageWarmth().process(output) == found


def test_the_fact_quotes_what_it_is_given() -> None:
    command = ImageWarmth().command("a'b:1").get_raw_value()
    assert "sh" in command and "import_time" in command
