"""What the signs are tried on: English, plain quotes, wrapped messages in one piece; and that a line found there is the original's."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.doctor import Source, diagnose, read_evidence
from bringup.doctor.german import in_english
from bringup.doctor.wording import join_wrapped, lower
from tests.doctor_cases import read

BANNER = """\
[    5.1] NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1b38)
[    5.1] NVRM: installed in this system is not supported by open
[    5.1] NVRM: nvidia.ko because it does not include the required GPU
[    5.1] NVRM: System Processor (GSP).
[    5.2] NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x22:0x56:894)
"""


def test_a_banner_of_the_driver_is_one_message() -> None:
    joined, starts = join_wrapped(lower(Source("$ dmesg", BANNER)).low.split("\n"))
    assert "supported by open nvidia.ko because it does not include the required gpu system processor (gsp)." in joined[0]
    assert starts == [0, 4, 5]


def test_the_line_that_is_shown_is_where_the_message_begins() -> None:
    found = diagnose([Source("$ dmesg", BANNER)]).causes[0]
    assert found.cause.id == "open-module-on-old-gpu"
    assert found.because[0].startswith("$ dmesg: [    5.1] NVRM: ")


def test_indented_lines_go_on_the_message_before_them_in_a_journal_too() -> None:
    lines = [
        "Nov 30 10:00:00 gpu1 apt[1]: Err:9 https://x.test/ Release",
        "Nov 30 10:00:00 gpu1 apt[1]:   404  Not Found",
        "",
        "  alone",
    ]
    joined, starts = join_wrapped(lines)
    assert joined == [f"{lines[0]} 404  Not Found", "", "  alone"] and starts == [0, 2, 3]


def test_what_a_daemon_only_remarked_is_no_failure() -> None:
    line = 'dockerd[1]: time="2026-11-30" level={} msg="Get \\"https://10.0.0.9/v2/\\": http: server gave HTTP response to HTTPS client"'
    assert diagnose([Source("$ journalctl -u docker", line.format("warning"))]).unknown
    assert diagnose([Source("$ journalctl -u docker", line.format("error"))]).causes[0].cause.id == "registry-speaks-http"


def test_a_german_line_is_shown_as_it_was() -> None:
    text = "Paketlisten werden gelesen…\nE: Paket nvidia-driver-999 kann nicht gefunden werden.\n"
    found = diagnose(read_evidence([text])).causes[0]
    assert found.because == ("message: E: Paket nvidia-driver-999 kann nicht gefunden werden.",)


@given(st.lists(st.sampled_from([german for _, german in read("german.yml")] + ["", "ist nicht", "a"])).map("\n".join))
@settings(max_examples=50, deadline=None)
def test_a_translation_has_as_many_lines(text: str) -> None:
    assert in_english(text.lower()).count("\n") == text.lower().count("\n")


@given(st.text(alphabet="ab \t\n.:", max_size=200))
@settings(max_examples=100, deadline=None)
def test_joining_loses_no_line(text: str) -> None:
    lines = text.split("\n")
    joined, starts = join_wrapped(lines)
    assert len(joined) == len(starts) and starts == sorted(set(starts))
    assert "".join("".join(joined).split()) == "".join(text.split())
