"""Merging daemon.json: whatever the user has stays, where it is; what cannot be merged safely is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.daemon_info import missing_from_daemon
from bringup.daemon_json import CannotMerge, Merged, combined, merge, merged, parse
from bringup.errors import HostError
from tests.dockerd_files import contents, dockerd, refused

UNIT = "/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock"
NVIDIA = {"path": "nvidia-container-runtime"}
WANTED: dict[str, Any] = {
    "default-shm-size": "8g", "runtimes": {"nvidia": NVIDIA}, "default-runtime": "nvidia", "features": {"cdi": True},
    "insecure-registries": ["registry:5000"], "registry-mirrors": ["https://m.example/"],
    "default-ulimits": {"memlock": {"Name": "memlock", "Soft": -1, "Hard": -1}}, "exec-opts": ["native.cgroupdriver=systemd"],
    "log-opts": {"max-size": "10m"}, "proxies": {"no-proxy": "localhost"}, "live-restore": True,
}  # fmt: skip


def taken(text: str | None, wanted: dict[str, Any] = WANTED, flags: str = UNIT) -> Merged:
    found = merge(text, wanted, flags)
    assert isinstance(found, Merged), str(found)
    return found


def leaves(value: object, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], object]:
    if isinstance(value, dict) and value:
        return {k: v for key, inner in value.items() for k, v in leaves(inner, (*path, key)).items()}
    return {path: value}


class TestWhatHoldsOfEveryMerge:
    @given(contents(), contents())
    def test_nothing_of_the_users_is_lost_but_what_is_wanted_otherwise(
        self, have: dict[str, Any], wanted: dict[str, Any]
    ) -> None:
        after, asked = leaves(taken(json.dumps(have), wanted).content), leaves(wanted)
        for path, value in leaves(have).items():
            touched = any(path[: len(each)] == each or each[: len(path)] == path for each in asked)
            in_runtime = path[:1] == ("runtimes",) and path[:2] in {each[:2] for each in asked}
            if not touched and not in_runtime and not (value is None and path[0] in wanted):
                assert after[path] == value

    @given(contents(), contents(), st.sampled_from([None, 2, 4, "\t"]))
    def test_merging_twice_is_merging_once(self, have: dict[str, Any], wanted: dict[str, Any], indent: int | str | None) -> None:
        once = taken(json.dumps(have, indent=indent), wanted)
        assert taken(once.text, wanted) == Merged(once.text, ())
        assert bool(once.changes) == (once.text != json.dumps(have, indent=indent))

    @given(contents(), contents())
    def test_the_users_keys_keep_their_order_and_new_ones_come_last(self, have: dict[str, Any], wanted: dict[str, Any]) -> None:
        text = json.dumps(have)
        assert list(taken(text, wanted).content)[: len(have)] == list(have)
        assert json.dumps(have) == text, "the user's content was written into"

    @given(contents())
    def test_what_is_wanted_is_there_afterwards(self, have: dict[str, Any]) -> None:
        after = taken(json.dumps(have)).content
        assert after["runtimes"]["nvidia"].get("path", "").endswith("nvidia-container-runtime")
        assert after["default-runtime"] == "nvidia" and after["features"]["cdi"] is True and after["live-restore"] is True
        assert after["default-ulimits"]["memlock"] == WANTED["default-ulimits"]["memlock"]
        assert after["exec-opts"] == ["native.cgroupdriver=systemd"] and "registry:5000" in after["insecure-registries"]
        assert {each.rstrip("/") for each in after["registry-mirrors"]} >= {"https://m.example"}

    @pytest.mark.skipif(dockerd() is None, reason="no dockerd of 23 or later on this machine")
    @settings(max_examples=100, deadline=None)
    @given(contents(), contents())
    def test_the_real_dockerd_takes_it(
        self, tmp_path_factory: pytest.TempPathFactory, have: dict[str, Any], wanted: dict[str, Any]
    ) -> None:
        folder = tmp_path_factory.mktemp("dockerd")
        for asked in (wanted, WANTED):
            assert refused(taken(json.dumps(have), asked).text, folder, *UNIT.split()[1:]) is None

    @given(st.text(max_size=40) | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["runtimes", "nvidia", "path", "features", "default-ulimits", "labels", "a"]), inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps))  # fmt: skip
    def test_whatever_is_in_the_file_it_is_merged_or_refused_in_one_sentence(self, text: str) -> None:
        found = merge(text, WANTED)
        assert isinstance(found, Merged) or ("\n" not in str(found) and found.way_out.startswith(("mend", "take", "add")))


def test_what_is_as_it_shall_be_stays_to_the_letter() -> None:
    text = '{"default-shm-size" :"8g",\n\n\t"runtimes":{ "nvidia": {"path":"nvidia-container-runtime","args":[]}}}'
    assert taken(text, {"default-shm-size": "8g", "runtimes": {"nvidia": NVIDIA}}) == Merged(text, ())


def test_the_users_way_of_writing_is_kept() -> None:
    text = '{\n\t"labels": ["größe=1"],\n\t"log-opts": {"tag": "\\ud800"}\n}\n'
    assert '\n\t"default-shm-size": "8g"\n}\n' in taken(text, {"default-shm-size": "8g"}).text
    assert "größe" in taken('{"labels": ["größe=1"]}').text and "\\ud800" in taken(text, {"icc": True}).text


def test_a_number_is_no_truth_value() -> None:
    """Python says that 1 == True; dockerd refuses a number here."""
    assert "1" in str(merge('{"features": {"cdi": 1}}', {}))
    assert taken('{"mtu": 1}', {"icc": True}).content == {"mtu": 1, "icc": True}


@pytest.mark.parametrize("text", [None, "", "\n", " \t\n", "{}", "null-less"])
def test_an_absent_or_empty_file_holds_nothing(text: str | None) -> None:
    text = None if text == "null-less" else text
    assert parse(text) == {} and taken(text, {}) == Merged(text or "", ())
    assert taken(text, {"mtu": 1}) == Merged('{\n  "mtu": 1\n}\n', ("mtu",))


@pytest.mark.parametrize("text", ["\ufeff", "\ufeff\n", "\ufeff{}", '\ufeff{"mtu": 1}'])
def test_a_byte_order_mark_is_read_over_and_left_out_since_nvidias_tools_stop_at_it(text: str) -> None:
    found = taken(text, {})
    assert found.changes == ("byte order mark",) and not found.text.startswith("\ufeff")
    assert found.content == parse(text) and taken(found.text, {}).changes == ()


def test_the_list_of_a_name_and_its_value_holds_each_name_once() -> None:
    have = '{"exec-opts": ["native.cgroupdriver=cgroupfs", "isolation=x"], "storage-opts": ["a=1"], "labels": ["tier=a", "b=2"]}'
    after = taken(have, {"exec-opts": ["native.cgroupdriver=systemd"], "storage-opts": ["a=1"], "labels": ["tier=b"]}).content
    assert after == {
        "exec-opts": ["isolation=x", "native.cgroupdriver=systemd"],
        "storage-opts": ["a=1"],
        "labels": ["b=2", "tier=b"],
    }


@pytest.mark.parametrize(("have", "after"), [
    ({"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}, {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}),
    ({"path": "/opt/gone/nvidia-container-runtime", "runtimeArgs": ["-x"]}, {**NVIDIA, "runtimeArgs": ["-x"]}),
    ({"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}},
     {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}}),
    ({"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/opt/x"}}, NVIDIA),
    ({"args": []}, {"args": [], **NVIDIA}),
    (None, NVIDIA),
])  # fmt: skip
def test_a_runtime_of_the_users_that_starts_the_right_program_keeps_its_words(have: object, after: object) -> None:
    if have is None:
        assert taken('{"runtimes": null}').content["runtimes"] == {"nvidia": after}
        return
    text = json.dumps({"runtimes": {"nvidia": have, "kata": {"path": "/usr/bin/kata-runtime"}}})
    assert taken(text).content["runtimes"] == {"nvidia": after, "kata": {"path": "/usr/bin/kata-runtime"}}


BROKEN = [
    ('{"mtu": 1,}', "line 1, column 10: a comma after"), ('{\n "mtu": 1,\n\n}', "line 2, column 10: a comma after"),
    ('{"dns": ["1.1.1.1",]}', "column 19: a comma after"), ('{\n  // comment\n  "mtu": 1\n}', "line 2, column 3: a comment"),
    ('// managed by ops\n{"mtu": 1}', "line 1, column 1: a comment"), ('{"mtu": 1 /* x */}', "column 11: a comment"),
    ('{"mtu": 1, # x\n "icc": true}', "column 12: a comment"), ('{"mtu": 1}\n// end', "line 2, column 1: a comment"),
    ("{'mtu': 1}", "column 2: a single quote"), ('{"mtu": 1} x', "column 12: Extra data"), ('{"mtu": 1', "column 9: the file ends"),
    ('{"mtu": 1\n', "column 9: the file ends"), ('{"labels": ["a', "line 1"), ('{"mtu": 1,, "icc": true}', "a comma too many"),
    ('{\n "default-runtime": "nvidia"\n "runtimes": {}\n}', "line 3, column 2"), ("<!DOCTYPE html>\n<html>", "a web page"),
    ('{"mtu": NaN}', "column 9: NaN is no number"), ('{"mtu": -Infinity}', "-Infinity is no number"),
    ('{"labels": ["NaN"], "mtu": 1e999}', "column 28: 1e999 is no number"), ('{"mtu": ' + "1" * 5000 + "}", "is no number"),
    ('{"runtimes": {"a": {"path": "x"}},\n "icc": true,\n "runtimes": {"b": {"path": "x"}}}',
     "line 3, column 2: the key 'runtimes' for a second time (first in line 1)"),
    ('{"runtimes": {"a": {"path": "x", "path": "y"}}}', "the key 'path' for a second time"),
    ("[]", "holds a list, not an object"), ("null", "holds null"), ('"x"', "holds a text"), ("[" * 100_000, "nested too deep"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BROKEN, ids=[text[:20] for text, _ in BROKEN])
def test_a_file_that_is_no_json_object_is_refused_with_its_place_and_its_name(text: str, said: str) -> None:
    for mark in ("", "\ufeff"):
        found = merge(mark + text, WANTED)
        assert isinstance(found, CannotMerge)
        assert said in str(found) and str(found).startswith("/etc/docker/daemon.json ")
        assert str(found).endswith("mend it or move it away") and len(str(found)) < 250
    with pytest.raises(HostError, match="mend it"):
        merged(text, WANTED)


def test_keys_of_the_same_name_in_different_objects_are_no_doubles() -> None:
    taken('{"runtimes": {"a": {"path": "x"}, "b": {"path": "x"}}, "log-opts": {"path": "\\"path\\": {"}}')


def test_a_password_near_a_fault_is_not_shown() -> None:
    said = str(merge('{"proxies": {"http-proxy": "http://me:secret@proxy:3128"} "mtu": 1}', {}))
    assert "proxy:3128" in said and "secret" not in said
    assert "secret" not in str(merge('{"hosts": "tcp://me:secret@h"}', {}))


WRONG_TYPES = [
    ("runtimes", []), ("runtimes", {"nvidia": "nvidia-container-runtime"}), ("runtimes", {"a": {"path": 1}}),
    ("runtimes", {"a": {"path": "x", "runtimeArgs": "-x"}}), ("features", "cdi"), ("features", {"cdi": "true"}), ("features", ["cdi"]),
    ("default-ulimits", [{"Name": "memlock"}]), ("default-ulimits", {"memlock": "-1:-1"}),
    ("default-ulimits", {"memlock": {"Name": "memlock", "Soft": "-1"}}), ("insecure-registries", "registry:5000"), ("hosts", "fd://"),
    ("exec-opts", "native.cgroupdriver=systemd"), ("exec-opts", {"native.cgroupdriver": "systemd"}), ("log-opts", {"max-file": 3}),
    ("log-opts", ["max-size=1m"]), ("registry-mirrors", [1]), ("live-restore", "true"), ("default-shm-size", 8), ("mtu", "1500"),
    ("default-shm-size", "8x"), ("default-runtime", ["nvidia"]), ("debug", 1), ("max-concurrent-downloads", True), ("mtu", 2**80),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), WRONG_TYPES)
def test_a_value_of_a_type_that_dockerd_does_not_take_is_refused_and_not_replaced(
    key: str, value: object, tmp_path: Path
) -> None:
    text = json.dumps({"icc": False, key: value})
    found = merge(text, WANTED)
    assert isinstance(found, CannotMerge) and key in found.reason and "dockerd" in found.reason
    if dockerd():
        assert refused(text, tmp_path), "the real one takes it"


FLAGS = [
    ('{"hosts": ["unix:///var/run/docker.sock"]}', "-H fd://", "hosts (as -H)"),
    ('{"hosts": ["unix:///var/run/docker.sock"]}', "--host=fd://", "hosts (as --host)"),
    ('{"hosts": []}', "-Hfd://", "hosts (as -H)"), ('{"debug": true}', "-D", "debug (as -D)"),
    ('{"default-runtime": "nvidia"}', "--default-runtime=nvidia", "default-runtime (as --default-runtime)"),
    ("{}", "--default-runtime runc", "default-runtime (as --default-runtime)"),
    ("{}", "--insecure-registry other:5000", "insecure-registries (as --insecure-registry)"),
    ("{}", "--exec-opt native.cgroupdriver=cgroupfs", "exec-opts (as --exec-opt)"),
    ("{}", "--default-ulimit memlock=-1:-1", "default-ulimits (as --default-ulimit)"),
    ('{"storage-driver": "overlay2"}', "--storage-driver overlay2 --log-level=warn", "storage-driver (as --storage-driver)"),
    ('{"features": {"buildkit": true}}', "--feature cdi=true", "features (as --feature)"),
    ('{"live-restore": true}', "--live-restore=false", "live-restore (as --live-restore)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "flags", "said"), FLAGS)
def test_a_key_in_the_file_and_as_a_flag_of_the_unit_is_refused(text: str, flags: str, said: str, tmp_path: Path) -> None:
    found = merge(text, WANTED, f"/usr/bin/dockerd {flags}")
    assert isinstance(found, CannotMerge) and said in found.reason and "systemctl cat docker" in found.way_out
    if dockerd() and "--feature" not in flags:  # Docker 28 has that flag
        assert "both as a flag" in str(refused(json.dumps(combined(json.loads(text), WANTED)), tmp_path, *flags.split()))


@pytest.mark.parametrize(("flags", "left_out"), [
    ("--default-runtime=nvidia --add-runtime=nvidia=/usr/bin/nvidia-container-runtime", "default-runtime"),
    ("--insecure-registry registry:5000 --insecure-registry b:1", "insecure-registries"), ("--live-restore", "live-restore"),
    ("--exec-opt native.cgroupdriver=systemd", "exec-opts"), ("--default-shm-size=8g", "default-shm-size"),
    ("--log-opt max-size=10m --log-opt max-file=3", "log-opts"), ("--feature cdi=true", "features"),
])  # fmt: skip
def test_what_the_units_flags_give_as_it_is_wanted_is_not_written(flags: str, left_out: str) -> None:
    after = taken("{}", WANTED, f"dockerd -H fd:// {flags}").content
    assert set(after) == set(WANTED) - {left_out}, "runtimes may be in both places"


def test_a_default_runtime_must_be_one() -> None:
    assert "typo" in str(merge('{"default-runtime": "typo"}', {})) and "did you mean nvidia?" in str(
        merge('{"default-runtime": "nvidea", "runtimes": {"nvidia": {"path": "x"}}}', {})
    )
    for text in ('{"default-runtime": "runc"}', '{"default-runtime": "io.containerd.runsc.v1"}', '{"default-runtime": ""}'):
        assert taken(text, {}).changes == ()
    assert taken('{"default-runtime": "mine"}', {}, "dockerd --add-runtime mine=/opt/mine").changes == ()
    assert taken('{"default-runtime": "nvidia"}').content["runtimes"] == {"nvidia": NVIDIA}, "healed by what is wanted"


def test_keys_that_dockerd_does_not_know_are_named() -> None:
    found = taken('{"default-ulimit": {}, "shm-size": "16G", "mtu": 1, "Debug": true}')
    assert found.unknown == ("default-ulimit", "shm-size", "Debug")


RUNNING: dict[str, Any] = {
    "Runtimes": {"runc": {}, "nvidia": {}}, "DefaultRuntime": "nvidia", "LiveRestoreEnabled": True, "CDISpecDirs": ["/etc/cdi"],
    "LoggingDriver": "local", "CgroupDriver": "systemd", "Labels": ["a=1"],
    "RegistryConfig": {"IndexConfigs": {"docker.io": {}, "registry:5000": {}}, "InsecureRegistryCIDRs": ["10.0.0.0/8", "127.0.0.0/8"],
                       "Mirrors": ["https://m.example/"]},
}  # fmt: skip
TAKEN_UP: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    (WANTED, {}, []),
    ({"insecure-registries": ["10.1.2.3/8", "http://registry:5000"]}, {}, []),
    ({"insecure-registries": ["10.0.0.0/8"], "log-driver": "local", "labels": ["a=1"]}, {}, []),
    ({"runtimes": {"nvidia": NVIDIA}}, {"Runtimes": {"runc": {}}}, ["runtime nvidia"]),
    ({"runtimes": {"nvidia": NVIDIA}}, {"Runtimes": None}, ["runtime nvidia"]),
    ({"features": {"cdi": True}}, {"CDISpecDirs": None}, ["CDI"]), ({"features": {"cdi": True}}, {"CDISpecDirs": []}, ["CDI"]),
    ({"insecure-registries": ["registry:5000"]}, {"RegistryConfig": None}, ["insecure registry registry:5000"]),
    ({"registry-mirrors": ["https://m.example"]}, {"RegistryConfig": None}, ["registry mirror https://m.example"]),
    ({"default-runtime": "runc"}, {}, ["default runtime runc"]), ({"live-restore": False}, {}, ["live-restore"]),
    ({"log-driver": "journald"}, {}, ["log driver journald"]),
    ({"exec-opts": ["native.cgroupdriver=cgroupfs", "a=b"]}, {}, ["cgroup driver cgroupfs"]),
    ({"features": {"buildkit": True}}, {"CDISpecDirs": None}, []), ({"runtimes": None, "features": None, "labels": None}, {}, []),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "differs", "missing"), TAKEN_UP)
def test_what_the_running_daemon_has_not_taken_up_is_named(
    wanted: dict[str, Any], differs: dict[str, Any], missing: list[str]
) -> None:
    assert missing_from_daemon({**RUNNING, **differs}, wanted) == missing
