"""Settings from group data: what is right is read, what is wrong is named in one sentence with the next step."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bringup.errors import UserError
from bringup.settings import KEYS, READERS, RepositoryOverride, Settings, read_settings

URL = "https://mirror.example/cuda/{distro}/{arch}/"


def own(facts: dict[str, object]) -> dict[str, object]:
    return {"train": {"reference": "r/t:1", "cuda": "12.8", **facts}}


WRONG = [
    ("gpu_driver_brnach", "lts", "unknown setting gpu_driver_brnach; did you mean gpu_driver_branch?"),
    ("gpu_image", ["x"], "did you mean gpu_images?"),
    ("gpu_xyzzyx", 1, "unknown setting gpu_xyzzyx (all settings: gpu_driver_source, "),
    ("gpu_driver_branch", 580.1, "gpu_driver_branch is 580.1: a version must be given as text: put quotes around it"),
    ("gpu_driver_branch", True, "it must be auto, lts, production, a branch such as 580"),
    ("gpu_driver_branch", "58O", "gpu_driver_branch is '58O'"),
    ("gpu_driver_branch", "580.159.04; reboot", "it must be"),
    ("gpu_driver_branch", ["580"], "it must be"),
    ("gpu_driver_branch", None, "it must be"),
    ("gpu_driver_source", "nvida", "it must be one of auto, nvidia, distro, preinstalled; did you mean nvidia?"),
    ("gpu_reboot", True, "gpu_reboot is True: it must be one of if-idle, never, always"),
    ("gpu_reboot", ["never"], "it must be one of"),
    ("gpu_reboot_timeout", "1800", "gpu_reboot_timeout is '1800': it must be a whole number of seconds"),
    ("gpu_reboot_timeout", 0, "1 or more"),
    ("gpu_reboot_timeout", 1800.0, "it must be a whole number of seconds"),
    ("gpu_lock_timeout", True, "gpu_lock_timeout is True: it must be a whole number of seconds"),
    ("gpu_expected_count", -1, "0 or more"),
    ("gpu_expected_count", 8.0, "it must be a whole number of GPUs"),
    ("gpu_expected_count", False, "it must be a whole number of GPUs"),
    ("gpu_expected_model", "", "it must be a text"),
    ("gpu_images", "auto", 'gpu_images is \'auto\': it must be a list of texts, such as ["a", "b"]'),
    ("gpu_images", [1], "it must be a list of texts"),
    ("gpu_images", [], "it must name at least one image"),
    ("gpu_images", ["auto", "Team/Train:7"], "gpu_images is 'Team/Train:7': it is no name of an image"),
    ("gpu_images", ["registry.example/train@sha256:5a5a"], "it is no name of an image"),
    ("gpu_images", ["pytorch pytorch"], "it is no name of an image"),
    ("gpu_images_own", ["x"], "it must be a mapping from a name to the facts of an image"),
    ("gpu_images_own", {"Train": {}}, "gpu_images_own['Train'] is 'Train': the name of an own image has small letters"),
    ("gpu_images_own", {"train": "x"}, "it must be a mapping with reference and cuda"),
    ("gpu_images_own", {"train": {"cuda": "12.8"}}, "gpu_images_own['train']['reference'] is None: it is needed, as text in quotes"),
    ("gpu_images_own", {"train": {"reference": "r/t:1", "cuda": 12.8}}, "['cuda'] is 12.8: it is needed, as text in quotes"),
    ("gpu_images_own", {"train": {"reference": "r/t:1", "cuda": "12.x"}}, "it must be a version such as 12.8"),
    ("gpu_images_own", own({"reference": "r/T:1"}), "it must be host/path:tag in lower case"),
    ("gpu_images_own", own({"smm": []}), "did you mean sm?"),
    ("gpu_images_own", own({"sm": ["sm_90a"]}), "['sm'] is 'sm_90a': it must be a number such as 90"),
    ("gpu_images_own", own({"digest": "sha256:12"}), "64 hexadecimal digits"),
    ("gpu_images_own", own({"architectures": ["arm64"]}), "it must be one of x86_64, aarch64"),
    ("gpu_images_own", own({"torch": 2.9}), "it must be text: put quotes around it"),
    ("gpu_images_own", own({"compressed_bytes": "3g"}), "it must be a whole number of bytes"),
    ("gpu_images_lock", "", "it must be a text"),
    ("gpu_images_refresh", "yes", "it must be true or false"),
    ("gpu_images_archive", ["a.tar"], "it must be a mapping from images to files"),
    ("gpu_images_archive", {"A/b:1": ""}, "it must be a mapping from images to files"),
    ("gpu_images_archive", {"team/A:1": "a.tar"}, "gpu_images_archive is 'team/A:1': it is no name of an image"),
    ("gpu_image_prewarm", "on", "it must be one of report, image, off"),
    ("gpu_pull_parallel", 0, "it must be a whole number of hosts, 1 or more"),
    ("gpu_registry_login", {"nvcr.io": {"username": "", "password_env": "KEY"}}, "for nvcr.io it is literally $oauthtoken"),
    ("gpu_registry_login", {"nvcr.io": {"username": "me", "password_env": "KEY"}}, "the user of nvcr.io is literally $oauthtoken"),
    ("gpu_registry_login", {"r.example": {"username": "me", "password": "x"}}, "a login has username and password_env"),
    ("gpu_registry_login", {"r.example": {"username": "me", "password_env": "nvapi-x"}}, "['password_env'] is '***': it must be the name"),
    ("gpu_registry_login", {"r.example": "me:x"}, "gpu_registry_login['r.example'] is '***': it must be a mapping"),
    ("gpu_registry_login", {"https://nvcr.io": {"username": "$oauthtoken", "password_env": "KEY"}}, "a registry is named as in references"),
    ("gpu_registry_login", {"": {"username": "me", "password_env": "KEY"}}, "without https://"),
    ("gpu_registry_login", {7: {"username": "me", "password_env": "KEY"}}, "gpu_registry_login is 7: a registry is named"),
    ("gpu_images_own", own({"unpack_ratio": float("nan")}), "it must be a number, more than 0"),
    ("gpu_registry_login", "me", "it must be a mapping from registries to username and password_env"),
    ("gpu_insecure_registries", {"a": 1}, "it must be a list of texts"),
    ("gpu_insecure_registries", ["http://r.example:5000"], "it must be host:port or a network such as 10.0.0.0/8, without http://"),
    ("gpu_insecure_registries", ["10.0.0.0/99"], "gpu_insecure_registries is '10.0.0.0/99': it must be host:port or a network"),
    ("gpu_insecure_registries", ["r.example/team"], "it must be host:port"),
    ("gpu_insecure_registries", [""], "it must be host:port"),
    ("gpu_registry_mirrors", "https://m.example", "it must be a list of texts"),
    ("gpu_registry_mirrors", ["m.example:5000"], "gpu_registry_mirrors is 'm.example:5000': a mirror is https://host:port"),
    ("gpu_registry_mirrors", ["https://me:word@m.example"], "gpu_registry_mirrors is '***': Docker takes no user and password"),
    ("gpu_registry_mirrors", ["https://m.example/?a=b"], "without query"),
    ("gpu_registry_mirrors", ["ftp://m.example"], "a mirror is https://host:port (or http://)"),
    ("gpu_memlock", "64g", "it must be unlimited or a whole number of bytes"),
    ("gpu_memlock", 1.5, "it must be unlimited"),
    ("gpu_memlock", True, "it must be unlimited"),
    ("gpu_shm_size", 8, "it must be a size such as 8g or 512m"),
    ("gpu_shm_size", "8 GB", "it must be a size"),
    ("gpu_require_floors", "yes", "gpu_require_floors is 'yes': it must be true or false"),
    ("gpu_require_floors", 1, "it must be true or false"),
    ("gpu_docker_options", [], "it must be a mapping"),
    ("gpu_docker_options", {1: 2}, "it must be a mapping from names to values"),
    ("gpu_docker_options", {"default-ulimit": {}}, "did you mean default-ulimits?"),
    ("gpu_docker_options", {"log-opts": {"max-file": 3}}, "dockerd wants an object of texts"),
    ("gpu_docker_options", {"a": {1, 2}}, "it must hold what JSON can hold"),
    ("gpu_docker_options", {"a": float("nan")}, "it must hold what JSON can hold"),
    ("gpu_accept", "container-host", "it must be a list of texts"),
    ("gpu_accept", ["container"], "did you mean container-host?"),
    ("gpu_reports", 1, "it must be a text"),
    ("gpu_repositories", {"nvidia": {"url": URL}}, "the sources are nvidia-driver, nvidia-toolkit, docker; did you mean nvidia-driver?"),
    ("gpu_repositories", {"docker": URL}, "gpu_repositories['docker'] is 'https://"),
    ("gpu_repositories", {"docker": {"key_url": URL}}, "it needs a url"),
    ("gpu_repositories", {"docker": {"url": URL, "key": URL}}, "it may hold url, key_url and fingerprint"),
    ("gpu_repositories", {"docker": {"url": "mirror.example"}}, "it must begin with http://, https:// or file://"),
    ("gpu_repositories", {"docker": {"url": "http://a/ [trusted=yes]"}}, "without spaces"),
    ("gpu_repositories", {"docker": {"url": "http://a/\nTrusted: yes"}}, "without spaces"),
    ("gpu_repositories", {"docker": {"url": "http://a/\n"}}, "without spaces"),
    ("gpu_repositories", {"docker": {"url": "https://user:secret@a/"}}, "without user and password"),
    ("gpu_repositories", {"docker": {"url": URL, "fingerprint": "3bf863cc"}}, "it must be 40 hexadecimal digits, in upper case"),
    ("gpu_repositories", {"docker": {"url": URL, "key_url": None}}, "['key_url'] is None"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "said"), WRONG, ids=[f"{key}={value!r}"[:60] for key, value, _ in WRONG])
def test_a_wrong_setting_is_one_sentence_with_the_value_and_the_next_step(key: str, value: object, said: str) -> None:
    with pytest.raises(UserError) as error:
        read_settings({key: value})
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_password_in_an_address_is_not_repeated_in_the_error() -> None:
    with pytest.raises(UserError) as error:
        read_settings({"gpu_repositories": {"docker": {"url": "https://user:secret@a/"}}})
    assert "secret" not in str(error.value)


RIGHT: list[tuple[str, object, object]] = [
    ("gpu_driver_branch", 580, "580"), ("gpu_driver_branch", "580.159.04", "580.159.04"), ("gpu_driver_branch", "495.46", "495.46"),
    ("gpu_memlock", 0, 0), ("gpu_memlock", "unlimited", "unlimited"), ("gpu_images", ("a", "b"), ("a", "b")),
    ("gpu_expected_count", 0, 0), ("gpu_expected_count", None, None), ("gpu_expected_model", None, None), ("gpu_shm_size", "512m", "512m"),
    ("gpu_accept", ["end-of-life", "end-of-life"], frozenset({"end-of-life"})), ("gpu_docker_options", {"mtu": None}, {"mtu": None}),
    ("gpu_repositories", {"docker": {"url": URL, "fingerprint": "A" * 40}}, {"docker": RepositoryOverride(URL, None, "A" * 40)}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "wanted"), RIGHT, ids=[f"{key}={value!r}"[:60] for key, value, _ in RIGHT])
def test_a_right_setting_is_read(key: str, value: object, wanted: object) -> None:
    assert getattr(read_settings({key: value}), key.removeprefix("gpu_")) == wanted


def test_every_setting_has_a_reader_that_takes_its_own_default() -> None:
    default = Settings()
    assert set(READERS) == {each.name for each in dataclasses.fields(Settings)}
    given: dict[str, Any] = {key: getattr(default, key.removeprefix("gpu_")) for key in KEYS}
    given["gpu_accept"] = []  # YAML and Python inventories have lists, no frozenset
    assert read_settings(given) == default


def test_other_data_of_a_host_is_none_of_ours() -> None:
    assert read_settings({"ssh_user": "admin", "_sudo": True, "gpus": 8, "GPU_IMAGES": 1}) == Settings()


def test_settings_cannot_be_changed_once_they_are_read() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().reboot = "always"  # type: ignore[misc]


def test_own_images_with_their_facts() -> None:
    facts = {
        "reference": "registry.example/train:7",
        "cuda": "12.8",
        "sm": [80, "sm_90", "10.0"],
        "compressed_bytes": 5_000_000_000,
    }
    found = read_settings({"gpu_images_own": {"train": facts}}).images_own["train"]
    assert (found.name, found.sm, found.architectures, found.torch) == ("train", (80, 90, 100), ("x86_64",), None)
    assert found.pinned == "registry.example/train:7"
