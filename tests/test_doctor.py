"""The doctor: cases give their cause first, noise and healthy hosts give no wrong one, and no text makes it fail."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.cli import main
from bringup.doctor import Diagnosis, Source, diagnose, explain, load_causes, read_evidence, show
from bringup.doctor.relations import RELATIONS
from bringup.doctor.sign import compiled, split
from bringup.doctor.wording import lower
from tests.doctor_cases import cases, common_messages, read

HERE = Path(__file__).parent
ROOT = HERE.parent


CASES = cases()
IDS = [f"{at}-{cause}" for at, (cause, _) in enumerate(CASES)]
COMMON = common_messages()
LAB: dict[str, dict[str, str]] = read("lab.yml")
NEAR = [each for common in COMMON for each in common.cases()]


def of(*texts: str) -> Diagnosis:
    return diagnose(read_evidence(texts))


def of_bundle(bundle: dict[str, str]) -> Diagnosis:
    return of(json.dumps(bundle))


def pasted(bundle: dict[str, str]) -> str:
    """A bundle as people paste it: prompts, files by `cat`, and the message at last."""
    lines = []
    for source, text in bundle.items():
        if source.startswith("/"):
            lines += [f"root@gpu1:~# cat {source}", text]
        elif source.startswith("$ "):
            lines += [f"user@gpu1:~$ sudo {source[2:]}", text]
    return "\n".join([bundle.get("message", ""), *lines])


@pytest.mark.parametrize(("cause", "evidence"), CASES, ids=IDS)
def test_a_case_gives_its_cause_first(cause: str, evidence: dict[str, str]) -> None:
    found = of_bundle(evidence)
    assert [each.cause.id for each in found.causes][:1] == [cause]
    assert of(yaml.safe_dump(evidence, allow_unicode=True, sort_keys=False)) == found


@pytest.mark.parametrize(("cause", "evidence"), CASES, ids=IDS)
def test_pasted_as_a_shell_shows_it(cause: str, evidence: dict[str, str]) -> None:
    assert [each.cause.id for each in of(pasted(evidence)).causes][:1] == [cause]


@pytest.mark.parametrize(("cause", "evidence"), NEAR, ids=[f"{at}-{cause}" for at, (cause, _) in enumerate(NEAR)])
def test_the_same_message_beside_other_facts_gives_another_cause(cause: str, evidence: dict[str, str]) -> None:
    assert [each.cause.id for each in of_bundle(evidence).causes][:1] == [cause]


def test_every_message_that_causes_share_has_near_misses() -> None:
    for common in COMMON:
        assert len([cause for cause, _ in common.beside]) >= 2, common.message
        assert {cause for cause, _ in common.beside} - {common.alone}, common.message
    by_sign: dict[str, list[str]] = {}
    for each in load_causes().values():
        for sign in each.shared:
            by_sign.setdefault(sign, []).append(each.id)
    texts = [lower(Source("message", common.message)).low for common in COMMON]
    lacking = [
        sign for sign, causes in by_sign.items() if len(causes) > 1 and not any(compiled(sign).search(each) for each in texts)
    ]
    assert lacking == []


def test_every_cause_has_a_case() -> None:
    assert {cause for cause, _ in CASES} == load_causes().keys()


def journald(text: str) -> str:
    return "\n".join(f"Nov 30 21:43:00 gpu1 dockerd[812]: {line}" if line else line for line in text.split("\n"))


GERMAN = [(re.compile(english), translated) for english, translated in read("german.yml")]


def german(text: str) -> str:
    for english, translated in GERMAN:
        text = english.sub(translated, text)
    return text


NOISE: dict[str, Callable[[str], str]] = {
    "colours": lambda text: "\n".join(f"\x1b[1;31m{line}\x1b[0m" for line in text.split("\n")),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "journald": journald,
    "kernel time": lambda text: "\n".join(f"[  812.{at:06}] {line}" for at, line in enumerate(text.split("\n"))),
    "german": german,
    "quotes": lambda text: text if text.startswith("{") else text.replace("'", "’").replace(' "', " “"),
    "in JSON": lambda text: text if text.startswith("{") else text.replace('"', '\\\\\\"'),
    "truncated": lambda text: text[: len(text) * 4 // 5],
    "around": lambda text: f"Reading package lists... Done\nsome line\n{text}\nmore lines\nexit status 1\n",
}


@pytest.mark.parametrize("noise", NOISE)
def test_noise_never_gives_another_cause_with_high_confidence(noise: str) -> None:
    """The cause, a related one with less confidence, or none."""
    wrong = []
    for cause, evidence in CASES:
        if set(evidence) != {"message"}:
            continue
        found = of(NOISE[noise](evidence["message"])).causes
        first = found[0].cause.id if found else cause
        # where the cut takes what tells them apart, the more general cause is left
        general = {
            *load_causes()[cause].explains,
            *(["module-missing-for-kernel"] if cause == "install-script-hid-failure" else []),
        }
        if first != cause and found[0].confidence == "high" and not (noise == "truncated" and first in general):
            wrong.append((cause, first))
    assert wrong == []


@pytest.mark.parametrize("noise", sorted(NOISE.keys() - {"truncated"}))
def test_noise_does_not_hide_a_cause(noise: str) -> None:
    lost = [
        cause
        for cause, evidence in CASES
        if set(evidence) == {"message"}
        and [each.cause.id for each in of(NOISE[noise](evidence["message"])).causes][:1] != [cause]
    ]
    assert lost == []


@pytest.mark.parametrize("bundle", read("healthy.yml"), ids=["ubuntu", "rhel"])
def test_a_healthy_host_has_no_cause(bundle: dict[str, str]) -> None:
    xml = (HERE / "samples" / "nvidia-smi-q-h200.xml").read_text()
    found = of_bundle(bundle)
    assert found.unknown, found.causes
    assert of(json.dumps({"$ nvidia-smi -q -x": xml})).unknown


@pytest.mark.parametrize("name", LAB)
def test_a_converged_host_of_the_lab_has_no_cause(name: str) -> None:
    found = of_bundle(LAB[name])
    assert found.unknown, found.causes
    broken = {
        **LAB[name],
        "$ lsmod": "Module Size Used by\next4 1 1\n",
        "/proc/driver/nvidia/version": "",
        "/sys/module/nvidia/version": "",
    }
    assert of_bundle({**broken, "$ nvidia-smi": ""}).causes


def test_a_message_of_many_causes_alone_is_not_sure() -> None:
    found = of('could not select device driver "" with capabilities: [[gpu]]')
    assert [each.confidence for each in found.causes] == ["low"]
    assert "docker-from-snap" in {each.cause.id for each in found.rivals} and found.look


def test_two_causes_at_once_are_both_found() -> None:
    found = of_bundle({
        "$ lspci -nnk": "17:00.0 3D controller [0302]: NVIDIA [10de:20b2]\n\tKernel driver in use: nouveau\n",
        "/etc/docker/daemon.json": '{"exec-opts": ["native.cgroupdriver=cgroupfs"]}',
    })  # fmt: skip
    assert {each.cause.id for each in found.causes} == {"nouveau-bound", "cgroupfs-workaround"}


def test_what_contradicts_lowers_and_what_is_missing_does_not() -> None:
    message = {"message": "modprobe: ERROR: could not insert 'nvidia': Required key not available"}
    alone = of_bundle(message).causes[0]
    off = of_bundle({**message, "$ mokutil --sb-state": "SecureBoot disabled\n"})
    assert alone.confidence == "high"
    assert not off.causes or (off.causes[0].score < alone.score and off.causes[0].against)


@pytest.mark.parametrize("evidence", read("unknown.yml"))
def test_what_has_no_cause_of_ours_is_unknown(evidence: dict[str, str]) -> None:
    assert of_bundle(evidence).unknown


def test_unknown_says_what_to_collect() -> None:
    found = of("everything is purple today")
    assert found.unknown and show.as_json(found)["collect"]
    assert "I don't know" in show.text_lines(found)[0]


def test_the_json_has_what_the_contract_names() -> None:
    value = show.as_json(of("NVRM: GPU 0000:41:00.0 is already bound to NovaCore."))
    assert value["unknown"] is False
    assert {"id", "title", "confidence", "because", "remedy"} <= value["causes"][0].keys()
    assert value["causes"][0]["because"] == ["message: NVRM: GPU 0000:41:00.0 is already bound to NovaCore."]


def test_the_catalog_of_causes_is_whole() -> None:
    causes = load_causes()
    assert len(causes) >= 120
    for cause in causes.values():
        assert cause.says or cause.shared or cause.facts, cause.id
        assert set(cause.explains) <= causes.keys() - {cause.id}, cause.id
        for sign in cause.signs:
            if sign.startswith("@"):
                assert sign[1:] in RELATIONS, (cause.id, sign)
            else:
                where, _, pattern = split(sign)
                assert compiled(pattern) and (where is None or compiled(where))
                assert pattern.lower() == pattern or "\\S" in pattern or "\\D" in pattern or "\\W" in pattern, (cause.id, pattern)
    used = {sign[1:] for cause in causes.values() for sign in cause.signs if sign.startswith("@")}
    assert RELATIONS.keys() == used


def test_the_pages_are_up_to_date() -> None:
    """Mended by `bringup doctor --docs docs/causes`."""
    folder = ROOT / "docs" / "causes"
    assert {path.name: path.read_text() for path in folder.glob("*.md")} == show.pages()


@given(st.text() | st.dictionaries(st.sampled_from(["message", "$ lsmod", "$ docker info", "/etc/docker/daemon.json", "$ dpkg -l",
       "/etc/cdi/nvidia.yaml", "$ lspci -nn", "$ dkms status"]), st.text() | st.none() | st.integers()).map(json.dumps))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_no_text_makes_it_fail(text: str) -> None:
    of(text)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        " ",
        "e: ",
        "nvidia ",
        '"',
        "{",
        "[",
        "- &a [*a]\n",
        "xid (pci:",
        "/",
        "error: ",
        "# cat /a\n",
        "deb ",
        "0x",
        "://a",
        "login -p ",
        "token=",
        "ist nicht ",
        "nvrm: a\n",
        "\n ",
    ],
)
def test_no_expression_blows_up(piece: str) -> None:
    began = time.process_time()
    of(
        piece * 20000,
        json.dumps({"/etc/docker/daemon.json": piece * 3000, "$ dpkg -l": piece * 3000, "$ lspci -nn": piece * 3000}),
    )
    assert time.process_time() - began < 10


def test_a_failure_of_a_run_is_explained_where_that_is_fairly_sure() -> None:
    said = explain("driver-packages failed: E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a'")
    assert len(said) == 1 and "dpkg-interrupted" in said[0] and "dpkg --configure -a" in said[0]
    several = ("nouveau holds the GPU", "no driver is loaded, without which nvidia-persistenced.service cannot run",
               'failed to generate CDI spec for mode "auto": failed to initialize NVML: Driver Not Loaded: unknown')  # fmt: skip
    assert [each.partition(")")[0] for each in explain("\n".join(several))] == ["likely cause (nouveau-bound"]
    assert explain("docker failed: Cannot connect to the Docker daemon at unix:///var/run/docker.sock") == []


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"\xff E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a'\n")
    assert main(["doctor", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["causes"][0]["id"] == "dpkg-interrupted"
    assert main(["doctor", "--explain", "nouveau-bund"]) == 2
    assert "nouveau-bound" in capsys.readouterr().err
    assert main(["doctor", str(tmp_path / "none")]) == 2
    assert main(["doctor", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(load_causes())
