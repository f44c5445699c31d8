"""Merging daemon.json: whatever the user has stays, where it is; what cannot be merged safely is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.daemon_json import merge, merged_text, missing_from_daemon, parse
from bringup.errors import HostError

WANTED: dict[str, Any] = {
    "default-shm-size": "8g",
    "runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}},
    "features": {"cdi": True},
    "insecure-registries": ["registry:5000"],
}

scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
names = st.sampled_from(["a", "b", "runtimes", "nvidia", "path", "features", "cdi", "insecure-registries", "ä"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
files = st.dictionaries(names, values, max_size=5)


def leaves(value: object, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    if isinstance(value, dict) and value:
        return {k: v for key, inner in value.items() for k, v in leaves(inner, (*path, key)).items()}
    return {path: value}


@given(files, files)
def test_nothing_of_the_users_is_lost_but_what_is_wanted_otherwise(have: dict[str, Any], wanted: dict[str, Any]) -> None:
    after, asked = leaves(merge(have, wanted)), leaves(wanted)
    for path, value in leaves(have).items():
        touched = any(path[: len(each)] == each or each[: len(path)] == path for each in asked)
        if isinstance(value, list) and isinstance(asked.get(path), list):
            now = after[path]
            assert isinstance(now, list) and now[: len(value)] == value
        elif not touched:
            assert after[path] == value


@given(files, files)
def test_what_is_wanted_is_there_afterwards_and_a_second_merge_changes_nothing(
    have: dict[str, Any], wanted: dict[str, Any]
) -> None:
    once = merge(have, wanted)
    assert merge(once, wanted) == once
    for path, value in leaves(wanted).items():
        now: Any = once
        for key in path:
            now = now[key]
        if isinstance(value, list):
            assert all(each in now for each in value)
        else:
            assert now == value or value == {}


@given(files, files)
def test_the_users_keys_keep_their_order_and_new_ones_come_last(have: dict[str, Any], wanted: dict[str, Any]) -> None:
    before = json.dumps(have)
    assert list(merge(have, wanted))[: len(have)] == list(have)
    assert json.dumps(have) == before, "the user's content was written into"


@given(files)
def test_the_text_that_is_written_reads_back_as_the_merge(have: dict[str, Any]) -> None:
    text = merged_text(json.dumps(have, indent=4), WANTED)
    assert text is not None and parse(text) == merge(have, WANTED)
    assert merged_text(text, WANTED) is None
    assert merged_text("\ufeff" + text, WANTED) is None


def test_lists_get_what_they_lack_once() -> None:
    have = {"insecure-registries": ["mine:5000", "registry:5000"]}
    assert merge(have, {"insecure-registries": ["registry:5000", "new:5000"]}) == {
        "insecure-registries": ["mine:5000", "registry:5000", "new:5000"]
    }


def test_a_number_is_no_truth_value() -> None:
    """Python says that 1 == True; dockerd refuses a number here."""
    text = merged_text('{"features": {"cdi": 1}}', {"features": {"cdi": True}})
    assert text is not None and '"cdi": true' in text


@pytest.mark.parametrize("text", [None, "", "\n", " \t\n", "\ufeff", "\ufeff\n", "{}", "\ufeff{}"])
def test_an_absent_or_empty_file_holds_nothing(text: str | None) -> None:
    assert parse(text) == {}
    assert merged_text(text, {}) is None
    assert merged_text(text, {"a": 1}) == '{\n  "a": 1\n}\n'


BROKEN = [
    ('{"a": 1,}', "is not JSON (line 1, column 9"), ('{\n  // comment\n  "a": 1\n}', "line 2, column 3"), ("{'a': 1}", "is not JSON"),
    ('{"a": 1} x', "is not JSON"), ('{"a": 1', "is not JSON"), ("[]", "holds list, not an object"), ("null", "holds NoneType"),
    ('"x"', "holds str"), ("[" * 100_000, "is not JSON that can be read"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BROKEN, ids=[text[:15] for text, _ in BROKEN])
def test_a_file_that_is_no_json_object_is_refused_with_the_place_and_the_next_step(text: str, said: str) -> None:
    with pytest.raises(HostError) as error:
        merged_text(text, WANTED)
    assert said in str(error.value) and str(error.value).startswith("/etc/docker/daemon.json ")
    assert str(error.value).endswith("mend it or move it away")


RUNNING: dict[str, Any] = {
    "Runtimes": {"runc": {}, "nvidia": {}}, "DefaultRuntime": "nvidia", "LiveRestoreEnabled": True, "CDISpecDirs": ["/etc/cdi"],
    "RegistryConfig": {"IndexConfigs": {"docker.io": {}, "registry:5000": {}}, "InsecureRegistryCIDRs": ["10.0.0.0/8", "127.0.0.0/8"]},
}  # fmt: skip
TAKEN_UP: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({**WANTED, "default-runtime": "nvidia", "live-restore": True}, {}, []),
    ({"insecure-registries": ["10.0.0.0/8"]}, {}, []),
    (WANTED, {"Runtimes": {"runc": {}}}, ["runtime nvidia"]),
    (WANTED, {"Runtimes": None}, ["runtime nvidia"]),
    (WANTED, {"CDISpecDirs": None}, ["CDI"]),
    (WANTED, {"RegistryConfig": None}, ["insecure registry registry:5000"]),
    ({"default-runtime": "runc"}, {}, ["default runtime runc"]),
    ({"live-restore": False}, {}, ["live-restore"]),
    ({"features": {"buildkit": True}}, {"CDISpecDirs": None}, []),
]


@pytest.mark.parametrize(("wanted", "differs", "missing"), TAKEN_UP)
def test_what_the_running_daemon_has_not_taken_up_is_named(
    wanted: dict[str, Any], differs: dict[str, Any], missing: list[str]
) -> None:
    assert missing_from_daemon({**RUNNING, **differs}, wanted) == missing
