"""Results -> what people read on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from bringup.catalog import Catalog
from bringup.report import Check, HostResult
from bringup.survey import Survey, gpus, known, loaded_version


def describe_host(survey: Survey, catalog: Catalog) -> dict[str, str]:
    """What the host is, in a few words each."""
    names: Counter[str] = Counter()
    for each in gpus(survey):
        subsystem = f"{each['subsystem_vendor']}:{each['subsystem_device']}" if each["subsystem_vendor"] else None
        found = catalog.gpu_candidates(f"{each['vendor']}:{each['device']}", subsystem)
        names[found[0].name if found else f"{each['vendor']}:{each['device']}"] += 1
    os = known(survey["os"])
    return {
        "gpu": ", ".join(f"{count} × {name}" for name, count in names.items()) or "no NVIDIA GPU",
        "system": f"{os['pretty_name'] if os else 'unknown system'}, kernel {survey['kernel']}, {survey['arch']}",
        "driver": loaded_version(survey) or "none loaded",
        "docker": str(known(survey["docker"]["version"]) or "none"),
    }


def verdict(result: HostResult) -> str:
    """One or two words on a host: the outcome, and on what it was reached."""
    if result.ended in ("refused", "unreachable", "stopped", "planned"):
        return result.ended
    if result.function == "not asked":
        return result.ended
    if result.function == "proven":
        proven = "proven on a simulated GPU" if result.hardware == "simulated" else "proven"
        return f"{proven}, below its floors" if result.performance == "below" else proven
    return "failed" if result.ended == "failed" and not result.checks else "not proven"


def summary_lines(results: Collection[HostResult], *, executed: bool, where: str | None) -> list[str]:
    """The summary of a run: per host what it is, what was changed, what was proven, what was not checked."""
    lines = ["--> gpu-bringup:"]
    for result in sorted(results, key=lambda each: each.host):
        lines.append(f"    {result.host}: {verdict(result)}")
        if result.summary:
            lines.append(f"        host      {result.summary['gpu']}; {result.summary['system']}")
        lines += [f"        problem   {each}" for each in result.problems]
        if not executed:
            steps = ", ".join(each["step"] for each in result.planned)
            if result.ended == "planned":
                lines.append(f"        plan      {steps or 'nothing to change'}")
            continue
        changed = ", ".join(result.changed) or ("nothing" if result.ended == "done" else "")
        if changed:
            reboots = f" ({result.reboots} reboot{'s' if result.reboots > 1 else ''})" if result.reboots else ""
            lines.append(f"        changed   {changed}{reboots}")
        if result.unplanned() and result.planned:
            lines.append(f"        unplanned {', '.join(result.unplanned())}")
        lines += _proof_lines(result)
        lines += [f"        note      {each}" for each in result.notes]
        lines += [f"        skipped   {each['step']}: {each['why']}" for each in result.skipped]
    if executed:
        lines += failed_lines(results)
    if where is not None:
        lines.append(f"    results: {where}")
    return lines


def count_of(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def failures(result: HostResult) -> list[Check]:
    """The checks that failed; of a host that did not get so far, its problems."""
    if result.ok:
        return []
    return [each for each in result.checks if each.status == "fail"] or [
        Check(result.ended, "fail", each) for each in result.problems
    ]


def told(check: Check) -> str:
    """What was found, and what to do about it."""
    return f"{check.detail} → {check.remedy}" if check.remedy else check.detail


def failed_lines(results: Iterable[HostResult]) -> list[str]:
    """A table of all that failed in the run, the part that a reader of many hosts looks for; [] where nothing did."""
    rows = [
        (result.host, check.name, check.measured or "-", check.expected or "-", told(check))
        for result in sorted(results, key=lambda each: each.host)
        for check in failures(result)
    ]
    if not rows:
        return []
    table = [("host", "failed", "measured", "expected", "cause"), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row[:4], widths, strict=True)), row[4]]) for row in table]
    return [f"    not in order: {count_of(len({row[0] for row in rows}), 'host')}", *(f"      {line}" for line in lines)]


def _proof_lines(result: HostResult) -> list[str]:
    passed = [each for each in result.checks if each.status == "pass"]
    lines = []
    if passed and result.function == "proven":
        shown = [each.detail for each in passed if each.name in ("driver", "gpus-in-container", "cuda-kernel")]
        lines.append(f"        proven    {'; '.join(shown)}")
        lines += [f"        docker    {each.detail}" for each in passed if each.name == "docker-ways"]
    lines += [f"        warning   {each.name}: {each.detail}" for each in result.checks if each.status == "warn"]
    if result.function == "proven":
        done = {each.name for each in result.checks}
        lacking = [] if result.performance == "within floors" else [f"performance ({result.performance})"]
        lacking += [
            words
            for words in ("daemon-reload", "Docker restart", "reboot")
            if f"survival-{words.lower().replace(' ', '-')}" not in done
        ]
        lines += [f"        not checked: {', '.join(lacking)}"] if lacking else []
    return lines
