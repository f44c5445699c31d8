"""Results -> one HTML page for the fleet. It holds all that it needs: no script, and nothing is fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bringup.performance import ODD
from bringup.report import Check, HostResult
from bringup.report.page_style import STYLE
from bringup.report.text import count_of, failures, verdict
from bringup.startup import STAGES

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # a browser then refuses whatever else might slip in
FULL = 1.5  # the margin at which a bar is full


def page(results: Sequence[HostResult]) -> str:
    """The whole page. Every text of a host's is escaped: it came from that host."""
    runs = ", ".join(sorted({each.run for each in results}))
    body = [
        _heading(results, runs),
        _hosts(results),
        _failures(results),
        _odd(results),
        _startup(results),
        _speed(results),
        _details(results),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>gpu-bringup {escape(runs)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(each for each in body if each)
        + "\n</body></html>\n"
    )


def _heading(results: Sequence[HostResult], runs: str) -> str:
    counts = Counter((verdict(each), _colour(each)) for each in results)
    told = " ".join(f'<b class="{colour}">{count} {escape(words)}</b>' for (words, colour), count in counts.most_common())
    revisions = ", ".join(sorted({each.revision for each in results if each.revision}))
    heading = f"<h1>gpu-bringup: {count_of(len(results), 'host')}</h1>"
    return f"{heading}<p>{told}</p><p>run {escape(runs)}, revision {escape(revisions or '?')}</p>"


def _colour(result: HostResult) -> str:
    return "pass" if result.ok and result.function == "proven" else "skipped" if result.ok else "fail"


def _hosts(results: Iterable[HostResult]) -> str:
    rows = (
        (
            f'<a href="#h{at}">{escape(each.host)}</a>',
            f'<b class="{_colour(each)}">{escape(verdict(each))}</b>',
            escape(each.performance),
            escape(each.summary.get("gpu", "?")),
            escape(each.summary.get("driver", "?")),
            escape(", ".join(each.changed) or "nothing") + (f" ({count_of(each.reboots, 'reboot')})" if each.reboots else ""),
        )
        for at, each in enumerate(results)
    )
    return _table("Hosts", ("host", "outcome", "performance", "GPUs", "driver", "changed"), rows)


def _failures(results: Iterable[HostResult]) -> str:
    rows = [
        tuple(escape(each) for each in (result.host, check.name, check.measured, check.expected, check.detail, check.remedy))
        for result in results
        if not result.ok
        for check in failures(result)
    ]
    return _table("What failed", ("host", "what", "measured", "expected", "cause", "remedy"), rows) if rows else ""


def _odd(results: Iterable[HostResult]) -> str:
    """Within its floors, and yet unlike the others of its model."""
    rows = [(escape(each.host), escape(note)) for each in results for note in each.notes if note.startswith(ODD)]
    return _table("Outliers", ("host", "what is odd"), rows) if rows else ""


def _startup(results: Sequence[HostResult]) -> str:
    timed = [(result, stages) for result in results if (stages := stages_of(result))]
    if not timed:
        return ""
    longest = max(sum(stages.values()) for _, stages in timed)
    used = [name for name in STAGES if any(name in stages for _, stages in timed)]
    legend = " ".join(f'<i class="s{STAGES.index(name)}"></i>{name}' for name in used)
    rows = []
    for result, stages in timed:
        parts = "".join(
            f'<i class="s{STAGES.index(name)}" style="width:{100 * stages[name] / longest:.2f}%" title="{name} {stages[name]:.0f} ms"></i>'
            for name in STAGES
            if stages.get(name, 0) > 0
        )
        rows.append((escape(result.host), f'<div class="bar">{parts}</div>', f"{sum(stages.values()):,.0f} ms"))
    table = _table("From docker create to a usable GPU", ("host", "stages", "together"), rows)
    return table.replace("</h2>", f'</h2><p class="legend">{legend}</p>', 1)


def stages_of(result: HostResult) -> dict[str, float]:
    """The median of each stage in ms; {} where none was measured. A result file may hold anything here."""
    startup = result.measured.get("cuda_startup")
    stages = startup.get("stages_ms") if isinstance(startup, Mapping) else None
    if not isinstance(stages, Mapping):
        return {}
    medians: dict[str, Any] = {
        name: each.get("median") for name, each in stages.items() if name in STAGES and isinstance(each, Mapping)
    }
    return {name: float(each) for name, each in medians.items() if isinstance(each, int | float)}


def _speed(results: Iterable[HostResult]) -> str:
    rows = [
        (
            escape(result.host),
            escape(check.name.removeprefix("speed-")),
            escape(check.measured),
            escape(check.expected),
            _bar(check),
        )
        for result in results
        for check in result.checks
        if check.name.startswith("speed-") and check.measured
    ]
    headings = ("host", "number", "measured (worst GPU)", "expected", "against the floor, which is the line")
    return _table("Numbers and floors", headings, rows) if rows else ""


def _bar(check: Check) -> str:
    if check.margin is None:
        return f'<span class="{check.status}">{escape(check.status)}</span>'
    width = min(max(check.margin / FULL, 0), 1) * 100
    return f'<div class="bar floor"><i class="{check.status}" style="width:{width:.1f}%"></i></div>'


def _details(results: Sequence[HostResult]) -> str:
    return "<h2>Every host</h2>" + "\n".join(_host(at, each) for at, each in enumerate(results))


def _host(at: int, result: HostResult) -> str:
    told = [each for each in result.checks if each.status != "pass"]
    passed = ", ".join(each.name for each in result.checks if each.status == "pass")
    lines = [("problem", each) for each in result.problems] + [("note", each) for each in result.notes]
    lines += [("skipped", f"{each.get('step', '?')}: {each.get('why', '?')}") for each in result.skipped]
    items = "".join(f"<li>{kind}: {escape(text)}</li>" for kind, text in lines)
    items += "".join(
        f'<li><b class="{each.status}">{each.status}</b> {escape(each.name)}: {escape(each.detail)}</li>' for each in told
    )
    opened = "" if result.ok else " open"
    system = escape(result.summary.get("system", "not surveyed"))
    return (
        f'<details id="h{at}"{opened}><summary>{escape(result.host)}: {escape(verdict(result))}</summary>'
        f"<p>{system}</p><ul>{items}<li>passed: {escape(passed) or 'nothing'}</li></ul></details>"
    )


def _table(title: str, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already."""
    head = "".join(f"<th>{each}</th>" for each in headings)
    lines = ("<tr>" + "".join(f"<td>{each}</td>" for each in row) + "</tr>" for row in rows)
    return f"<h2>{title}</h2><table><tr>{head}</tr>\n" + "\n".join(lines) + "\n</table>"
