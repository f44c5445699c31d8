"""What is asked once for all hosts, and what is written into the lock file; Docker's interface and the registry are stood in for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bringup import catalog
from bringup.errors import HostError
from bringup.images_lock import Locked, Platform, lock_text, parse_lock
from bringup.policy.images import how_pulled
from bringup.settings import read_settings
from bringup.target import Pulling
from operations import registry
from operations.registry import Answer, known
from operations.registry_client import RegistryError

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
TAG = "registry.example/train:7"
INDEX = '{"Descriptor": {"digest": "%s"}, "Platforms": [{"os": "linux", "architecture": "amd64"}]}'


class Lab:
    """A host's Docker and a registry that answer as they are told to."""

    def __init__(self, folder: Path) -> None:
        self.answers: list[Answer] = [Answer(200, INDEX % A)]
        self.asked: list[str] = []
        self.sizes: dict[str, Platform] | None = {"x86_64": Platform(1000, B)}
        self.logged: list[str] = []
        self.lock = folder / "locks" / "images.lock.yml"
        self.pulling: Pulling = replace(how_pulled(read_settings({}), catalog.load(), ()), lock=str(self.lock))

    def engine(self, host: object, method: str, path: str, auth: str = "", body: str = "") -> Answer:
        self.asked.append(path)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]

    def platforms(self, *arguments: object) -> dict[str, Platform]:
        if self.sizes is None:
            raise RegistryError("timed out")
        return self.sizes

    def log(self, message: str, *arguments: object) -> None:
        self.logged.append(message)

    def known(self, reference: str = TAG, arch: str = "x86_64", **more: object) -> Locked:
        return known(self, reference, replace(self.pulling, **more), arch)  # type: ignore[arg-type]

    @property
    def locked(self) -> dict[str, Locked]:
        return parse_lock(self.lock.read_text(), "x")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab(tmp_path)
    for name, value in {
        "engine": made.engine,
        "platforms": made.platforms,
        "_known": {},
        "_refused": {},
        "_unsteady": set(),
    }.items():
        monkeypatch.setattr(registry, name, value)
    monkeypatch.setattr("operations.registry.time.sleep", lambda seconds: None)
    return made


def test_a_tag_is_resolved_once_and_written_down(lab: Lab) -> None:
    for _ in range(3):
        assert lab.known().digest == A
    assert lab.asked == ["/distribution/registry.example/train:7/json"]
    assert lab.locked[TAG].digest == A and lab.locked[TAG].platforms == {"x86_64": Platform(1000, B)}
    assert not list(lab.lock.parent.glob(".*"))


def test_the_next_run_asks_nothing(lab: Lab) -> None:
    lab.lock.parent.mkdir()
    lab.lock.write_text(lock_text({TAG: Locked(A, "2026-12-01", {"x86_64": Platform(1000, B)})}))
    assert lab.known().digest == A and lab.known(f"{TAG}@{A}").digest == A and lab.asked == []


def test_another_digest_than_the_tags_is_asked_for_itself_and_not_written(lab: Lab) -> None:
    lab.known()
    lab.answers = [Answer(200, INDEX % B)]
    assert lab.known(f"{TAG}@{B}").digest == B
    assert lab.asked[-1] == f"/distribution/registry.example/train@{B}/json" and lab.locked[TAG].digest == A
    assert lab.known().digest == A


def test_a_moved_tag_is_said_and_written_where_that_is_asked_for(lab: Lab) -> None:
    lab.lock.parent.mkdir()
    other = "registry.example/other:1"
    lab.lock.write_text(lock_text({TAG: Locked(B, "2026-11-01", {"x86_64": Platform(1, A)}), other: Locked(B, "2026-11-01", {})}))
    assert lab.known(refresh=True).digest == A
    assert lab.logged == [f"{TAG} has moved: it was {B}, it is {A} now"]
    assert lab.locked[TAG].digest == A and lab.locked[other].digest == B
    assert lab.known(refresh=True).digest == A and len(lab.asked) == 1


def test_sizes_that_the_registry_does_not_tell_are_said_and_stop_nothing(lab: Lab) -> None:
    lab.sizes = None
    assert lab.known().platforms == {"x86_64": Platform()}
    assert (
        len(lab.logged) == 1
        and "the size of registry.example/train:7 is not known" in lab.logged[0]
        and "(timed out)" in lab.logged[0]
    )


def test_an_architecture_that_is_missing_is_known_without_sizes(lab: Lab) -> None:
    assert lab.known(arch="aarch64").platforms == {"x86_64": Platform()}


def test_what_a_registry_says_to_all_is_asked_once(lab: Lab) -> None:
    lab.answers = [Answer(404, '{"message": "manifest unknown: manifest unknown"}')]
    for _ in range(3):
        with pytest.raises(HostError, match="has no train:7"):
            lab.known()
    assert len(lab.asked) == 1 and not lab.lock.exists()


def test_a_registry_that_does_not_answer_is_asked_again_by_one_host_and_once_by_each_other(lab: Lab) -> None:
    lab.answers = [Answer(500, '{"message": "dial tcp 192.0.2.1:443: connect: connection refused"}')]
    for count in (3, 4, 5):
        with pytest.raises(HostError, match="cannot be reached"):
            lab.known()
        assert len(lab.asked) == count
    lab.answers = [Answer(200, INDEX % A)]
    assert lab.known().digest == A


def test_a_fault_that_passes_is_passed_over(lab: Lab) -> None:
    lab.answers = [Answer(500, '{"message": "unexpected EOF"}'), Answer(0, "no answer"), Answer(200, INDEX % A)]
    assert lab.known().digest == A and len(lab.asked) == 3


@pytest.mark.parametrize("text", ["<html>", "{}", '{"Descriptor": {}}'])
def test_an_answer_that_is_none_is_one_sentence(lab: Lab, text: str) -> None:
    lab.answers = [Answer(200, text)]
    with pytest.raises(HostError, match="cannot read"):
        lab.known()


def test_a_lock_file_of_another_schema_stops_before_anything_is_asked(lab: Lab) -> None:
    lab.lock.parent.mkdir()
    lab.lock.write_text("schema: 9\n")
    with pytest.raises(HostError, match="has schema 9"):
        lab.known()
    assert lab.asked == []


def test_a_password_is_read_from_the_environment_and_needed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    logins: Any = read_settings(
        {"gpu_registry_login": {"registry.example": {"username": "me", "password_env": "P"}}}
    ).registry_login
    pulling = replace(lab.pulling, logins=logins)
    assert set(
        read_settings({"gpu_registry_login": {"index.docker.io": {"username": "me", "password_env": "P"}}}).registry_login
    ) == {"docker.io"}
    monkeypatch.delenv("P", raising=False)
    with pytest.raises(HostError, match=r"the password for registry\.example is not in the environment: set P"):
        registry.authorization(pulling, "registry.example")
    monkeypatch.setenv("P", "secret")
    assert '"password": "secret"' in registry.login_body(pulling, "registry.example")
    assert registry.authorization(pulling, "registry.example") and registry.authorization(pulling, "docker.io") == ""
