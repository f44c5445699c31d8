from __future__ import annotations

import re

from bringup.report import HostResult
from bringup.report.textfile import metrics
from tests.results import evil, good, slow

LINE = re.compile(r'# (HELP|TYPE) gpu_bringup_\w+ .+|gpu_bringup_\w+(\{\w+="([^"\\\n]|\\.)*"(,\w+="([^"\\\n]|\\.)*")*\})? \d+')


def test_every_line_is_of_prometheus_text_format_whatever_a_check_is_called() -> None:
    for result in (good(), slow(), evil(), HostResult("new", "run")):
        for line in metrics(result).splitlines():
            assert LINE.fullmatch(line), line


def test_a_good_and_a_slow_host_differ() -> None:
    assert "gpu_bringup_proven 1\n" in metrics(good())
    text = metrics(slow())
    assert "gpu_bringup_proven 1\n" in text
    assert 'gpu_bringup_check_failed{check="speed-h2d-pinned"} 1' in text and 'gpu_bringup_checks{status="fail"} 1' in text
    assert 'gpu_bringup_performance{performance="below",hardware="real"} 1' in text


def test_the_same_result_gives_the_same_file() -> None:
    assert metrics(good()) == metrics(good())
