"""Results -> JUnit XML, for CI: a suite for each host, a case for each check, and one for how the host ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from bringup.report import Check, HostResult
from bringup.report.text import verdict

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, 2.2: what no file may hold


def junit(results: Sequence[HostResult]) -> str:
    """`not-judged` and `skipped` are skipped there: JUnit knows no better word, and neither is a pass."""
    root = xml.Element("testsuites", name="gpu-bringup")
    for result in results:
        suite = xml.SubElement(root, "testsuite", name=_clean(result.host))
        _outcome(suite, result)
        for check in result.checks:
            _case(suite, result.host, check)
        cases = suite.findall("testcase")
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("errors", "0")
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(each.get(key, "0")) for each in root)))
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _outcome(suite: xml.Element, result: HostResult) -> None:
    case = xml.SubElement(suite, "testcase", name="outcome", classname=_clean(result.host))
    if result.ok:
        xml.SubElement(case, "system-out").text = _clean(f"{verdict(result)}; performance: {result.performance}")
    else:
        said = _clean("; ".join(result.problems) or verdict(result))
        xml.SubElement(case, "failure", message=said, type=result.ended).text = _clean("\n".join(result.notes))


def _case(suite: xml.Element, host: str, check: Check) -> None:
    case = xml.SubElement(suite, "testcase", name=_clean(check.name), classname=_clean(host))
    if check.status == "fail":
        xml.SubElement(case, "failure", message=_clean(check.detail), type="fail").text = _clean(check.remedy)
    elif check.status in ("skipped", "not-judged"):
        xml.SubElement(case, "skipped", message=_clean(f"{check.status}: {check.detail}"))
    else:
        xml.SubElement(case, "system-out").text = _clean(f"{check.status}: {check.detail}")


def _clean(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
