"""The reports of a run: what is written can be read by others, and broken result files hide nothing of the others."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from junitparser import JUnitXml, TestSuite
from typing_extensions import override

from bringup.cli import main
from bringup.report import Check, HostResult
from bringup.report.fleet import failed_arguments
from bringup.report.html import page
from bringup.report.junit import junit
from bringup.report.stored import json_schema, read_result
from bringup.report.text import summary_lines
from bringup.report.unreachable import unreachable as unreachable_because
from tests.results import EVIL, evil, fleet, good, slow, unreachable

SCHEMA = Path(__file__).parent.parent / "docs" / "report.schema.json"
CHROMIUM = next(
    (found for each in ("chromium-headless-shell", "chromium", "google-chrome") if (found := shutil.which(each))), None
)
EVERY = [good(), slow(), unreachable(), evil()]


def written(result: HostResult) -> str:
    return json.dumps(result.as_json(), allow_nan=False)


def test_the_published_schema_is_that_of_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Mend it with `bringup report --schema >docs/report.schema.json`."""
    Draft202012Validator.check_schema(json_schema())
    assert main(["report", "--schema"]) == 0 and capsys.readouterr().out == SCHEMA.read_text()


@pytest.mark.parametrize("result", EVERY, ids=["good", "slow", "unreachable", "evil"])
def test_a_result_is_of_the_schema_and_is_read_back_whole(result: HostResult) -> None:
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(result.as_json())
    assert read_result(written(result)) == result


def test_what_is_no_number_is_written_as_json_all_the_same() -> None:
    result = good()
    result.measured = {"gpu_benchmark": {"values": [math.nan, math.inf, 1.5]}}
    assert json.loads(written(result))["measured"]["gpu_benchmark"]["values"] == ["nan", "inf", 1.5]


BROKEN = {
    "cut off": (written(good())[:200], "is no JSON"),
    "empty": ("", "is no JSON"),
    "foreign": ('{"resourceType": "Patient"}', "is no result of gpu-bringup"),
    "a list": ("[1]", "is no result of gpu-bringup"),
    "newer": (json.dumps({**good().as_json(), "schema": 2}), "has schema 2, and this version reads 1"),
    "no run": (json.dumps({"schema": 1, "host": "x"}), "is broken: run"),
    "wrong word": (json.dumps({**good().as_json(), "function": "surely"}), "is broken: function is 'surely'"),
    "wrong type": (
        json.dumps({**good().as_json(), "checks": [{"name": 5, "status": "pass"}]}),
        "is broken: checks.0.name is '5'",
    ),
    "number as text": (json.dumps({**good().as_json(), "reboots": "3"}), "is broken: reboots is '3'"),
    "unknown key": (json.dumps({**good().as_json(), "extra": 1}), "is broken: extra"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_named_and_the_others_are_reported(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = BROKEN[kind]
    (tmp_path / "broken.json").write_text(text)
    (tmp_path / "good.json").write_text(written(good(7)))
    assert main(["report", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert f"bringup: broken.json {said}" in captured.err and captured.err.count("\n") == 1
    assert "gpu-007: proven" in captured.out and "gpu-007" in (tmp_path / "index.html").read_text()


def test_bytes_that_are_no_text_and_a_host_in_two_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(written(good()))
    assert main(["report", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert (
        "bytes.json could not be read (it is no UTF-8 text)" in said and "b.json is of host gpu-000, which a.json is of" in said
    )


@pytest.mark.parametrize("folder", ["gone", "empty"])
def test_a_folder_without_results_is_wrong_use(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["report", str(tmp_path / folder)]) == 2
    assert "reports/latest" in capsys.readouterr().err and not list((tmp_path / "empty").iterdir())


def test_a_folder_of_good_results_is_rebuilt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at, each in enumerate(EVERY):
        (tmp_path / f"{at}.json").write_text(written(each))
    assert main(["report", str(tmp_path)]) == 0
    assert sorted(each.name for each in tmp_path.iterdir() if each.suffix != ".json") == [
        "failed.args",
        "index.html",
        "junit.xml",
    ]
    assert "not in order: 3 hosts" in capsys.readouterr().out


def test_the_table_of_the_terminal_holds_measured_beside_expected() -> None:
    lines = summary_lines([slow(), good(), unreachable()], executed=True, where=None)
    table = lines[next(at for at, each in enumerate(lines) if "not in order: 2 hosts" in each) + 1 :]
    assert table[0].split() == ["host", "failed", "measured", "expected", "cause"]
    assert re.match(r" +gpu-001 +speed-h2d-pinned +27 GB/s +at least 49.5 GB/s +27 GB/s <slow>$", table[1])
    assert re.match(r" +gpu-002 +unreachable +- +- +no route$", table[2]) and len(table) == 3


def test_a_host_below_its_floors_is_never_called_proven_alone() -> None:
    assert "gpu-001: proven, below its floors" in "\n".join(summary_lines([slow()], executed=True, where=None))
    assert "1 proven, below its floors" in page([slow()])


def test_outliers_have_a_place_of_their_own_on_the_page() -> None:
    assert "Outliers" in page([good(), slow()]) and "Outliers" not in page([good()])


def test_no_table_where_nothing_failed() -> None:
    assert not any("not in order" in each for each in summary_lines([good()], executed=True, where=None))


def test_hosts_to_run_again_are_those_that_are_not_ok() -> None:
    assert failed_arguments([good(0), slow(1), unreachable(2)]) == "--limit gpu-001\n--limit gpu-002\n"
    assert failed_arguments([good()]) == ""


def test_junit_is_read_by_a_public_parser_with_the_same_counts() -> None:
    not_judged = good(5)
    not_judged.checks = [Check("speed-x", "not-judged", "no floor"), Check("speed", "skipped", "in use")]
    found = JUnitXml.fromstring(junit([*EVERY, not_judged]).encode())
    suites = [each for each in found if isinstance(each, TestSuite)]
    assert len(suites) == 5 and suites[0].name == "gpu-000"
    results = [[type(each).__name__ for case in suite for each in case.result] for suite in suites]
    assert (
        results[0] == [] and results[1] == ["Failure", "Failure"] and results[2] == ["Failure"] and results[4] == ["Skipped"] * 2
    )
    assert (suites[1].failures, suites[4].skipped, suites[4].failures) == (2, 2, 0)
    assert found.failures == sum(each.failures for each in suites) == 5
    assert found.tests == sum(len(list(each)) for each in suites)


class Tags(HTMLParser):
    """All tags of a page, and whether they are closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.addresses: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self._open.append(tag)

    @override
    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_the_page_fetches_nothing_runs_nothing_and_escapes_what_hosts_say() -> None:
    tags = Tags(page(EVERY))
    assert not tags.found & {"script", "link", "img", "iframe", "object"}
    assert tags.addresses and all(each.startswith("#h") for each in tags.addresses)
    assert EVIL not in page(EVERY) and "<slow>" not in page(EVERY)


def test_a_result_with_nonsense_where_stages_are_expected_has_no_bars() -> None:
    result = good()
    for nonsense in (5, {"stages_ms": 5}, {"stages_ms": {"create": 5}}, {"stages_ms": {"create": {"median": "x"}}}):
        result.measured = {"cuda_startup": nonsense}
        assert "usable GPU" not in page([result])


def test_500_hosts_fit_into_3_mb() -> None:
    assert len(page(fleet(500)).encode()) < 3_000_000


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (on Debian: apt-get install chromium-headless-shell)")
@pytest.mark.parametrize("count", [1, 8])
def test_a_browser_shows_the_page(count: int, tmp_path: Path) -> None:
    """The bars and the words are there, nothing runs over the side, and the browser finds nothing to complain of."""
    file, picture = tmp_path / "index.html", tmp_path / "page.png"
    file.write_text(page([*fleet(count - 1), evil(count - 1)] if count > 1 else fleet(1)))
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,1600", f"--screenshot={picture}", file.as_uri(),
        ],
        capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 20_000


UNREACHED = {  # in the words of pyinfra 3.10 and paramiko 4, as they came
    "Could not resolve hostname ([Errno -2] Name or service not known)": "is its name right?",
    "Could not connect ([Errno None] Unable to connect to port 22 on 192.0.2.7)": "does sshd run?",
    "Could not connect (timed out)": "does a firewall lie between?",
    "Could not connect ([Errno 110] Connection timed out)": "does a firewall lie between?",
    "SSH error (Error reading SSH protocol banner)": "not as an SSH server does",
    "SSH host key error (Host key for 192.0.2.7 does not match.)": "remove its old key from known_hosts",
    "SSH error (StrictPolicy: No host key for 192.0.2.7 found in known_hosts)": "ssh_strict_host_key_checking",
    "Authentication error (username=admin, key=/home/a/.ssh/id) (Authentication failed.)": "are its user and its key right?",
    "a new sort\n of trouble": "address, user and key right?",
}


@pytest.mark.parametrize(("said", "next_step"), UNREACHED.items())
def test_why_a_host_could_not_be_reached_is_one_sentence_with_the_next_step(said: str, next_step: str) -> None:
    sentence = unreachable_because(said)
    assert sentence.endswith("?") or "known_hosts" in sentence
    assert next_step in sentence and "\n" not in sentence and "Errno" not in sentence


def test_without_a_known_reason_nothing_is_made_up() -> None:
    assert unreachable_because(None) == "the host could not be reached: is it up, and is its address, user and key right?"
