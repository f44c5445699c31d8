"""The `bringup` command. One function a verb; what a verb needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bringup import __version__
from bringup.errors import UserError

if TYPE_CHECKING:
    from bringup.catalog import Catalog

OK, FINDINGS, WRONG_USE = 0, 1, 2
UNREAD = 141  # as a shell tells of SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 in order, 1 found what must be mended, 2 wrong use, with one sentence on stderr; 141 nobody reads any more."""
    arguments = parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # `bringup … | head` has what it wanted
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.close()  # else the interpreter flushes it once more, and complains
        return UNREAD
    except UserError as error:
        print(f"bringup: {error}", file=sys.stderr)
        return WRONG_USE
    return code


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="bringup", description="From a fresh VM to a proven GPU host: what is decided, and why.")
    top.add_argument("--version", action="version", version=f"bringup {__version__}")
    verbs = top.add_subparsers(metavar="VERB", required=True)
    add_plan(verbs)
    add_doctor(verbs)
    add_report(verbs)
    add_catalog(verbs)
    return top


def add_plan(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    plan = verbs.add_parser(
        "plan",
        help="what would be done on hosts of which there are surveys",
        description="Exit 0: all planned; 3: a host is refused; 1: a host without survey; 2: wrong use.",
    )
    plan.add_argument(
        "--survey", required=True, metavar="FILE", help="what `pyinfra … fact facts.survey.HostSurvey --json` printed; - is stdin"
    )
    plan.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, such as gpu_driver_branch=lts (repeatable)"
    )
    plan.add_argument("--today", type=date.fromisoformat, default=date.today(), metavar="DAY", help="plan as of 2026-11-30")
    plan.add_argument("--json", action="store_true", help="targets, steps, reasons and refusals as JSON")
    plan.add_argument("-v", "--verbose", action="store_true", help="the steps with their reasons")
    plan.set_defaults(run=plan_surveys)


def plan_surveys(arguments: argparse.Namespace) -> int:
    from bringup.plan import make_plan
    from bringup.report.plans import Found, as_json, exit_code, plan_lines
    from bringup.report.text import describe_host
    from bringup.settings import read_settings
    from bringup.survey.saved import read_surveys

    settings = read_settings(dict(_assignment(each) for each in arguments.set))
    surveys = read_surveys(*_text_of(arguments.survey))
    catalog = catalog_at(None)
    found: dict[str, Found] = {}
    summaries = {}
    for host, survey in surveys.items():
        if survey is None:
            found[host] = "the host gave no survey"
            continue
        summaries[host] = describe_host(survey, catalog)
        found[host] = make_plan(survey, settings, catalog, arguments.today)
    if arguments.json:
        print(json.dumps(as_json(found), indent=2))
    else:
        print("\n".join(plan_lines(found, summaries, verbose=arguments.verbose)))
    return exit_code(found.values())


def _assignment(text: str) -> tuple[str, object]:
    """`key=value` as pyinfra's --data reads it: JSON where it is some, else text."""
    from bringup.errors import nearest
    from bringup.settings import KEYS, PREFIX

    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--set {text}: it must be KEY=VALUE")
    if not key.startswith(PREFIX):
        raise UserError(f"unknown setting {key}{nearest(PREFIX + key, KEYS)} (settings begin with {PREFIX})")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _text_of(file: str) -> tuple[str, str]:
    """(text, its name for errors)."""
    name = "standard input" if file == "-" else file
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig"), name
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{name} could not be read ({getattr(error, 'strerror', None) or 'it is no UTF-8 text'})") from None


def add_doctor(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = verbs.add_parser(
        "doctor",
        help="from a message, a log or an evidence bundle to its cause and remedy",
        description="All files are taken as of one host: pasted messages, logs, shell transcripts, and evidence bundles (YAML or JSON: "
        'a mapping of "/a/file", "$ a command" or "message" to its text). Exit 0 when it answered, unknown included; 2: wrong use.',
    )
    doctor.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="what there is; - or none is standard input")
    doctor.add_argument("--json", action="store_true", help="causes, confidence, reasons and remedies as JSON")
    doctor.add_argument("--list", action="store_true", help="all causes that are known")
    doctor.add_argument("--explain", metavar="ID", help="one cause: what shows it, why it matters, what to do")
    doctor.add_argument("--docs", type=Path, metavar="FOLDER", help="write the pages of all causes into a folder")
    doctor.set_defaults(run=doctor_answers)


def doctor_answers(arguments: argparse.Namespace) -> int:
    from bringup.doctor import diagnose, load_causes, read_evidence, show

    if arguments.list:
        print("\n".join(show.list_lines()))
    elif arguments.explain is not None:
        cause = load_causes().get(arguments.explain)
        if cause is None:
            near = difflib.get_close_matches(arguments.explain, load_causes(), 1)
            raise UserError(
                f"there is no cause {arguments.explain}" + (f", the nearest is {near[0]}" if near else ": see --list")
            )
        print(show.page(cause, cause.id), end="")
    elif arguments.docs is not None:
        write_pages(arguments.docs, show.pages())
    else:
        diagnosis = diagnose(read_evidence(_evidence_of(each) for each in arguments.files))
        print(json.dumps(show.as_json(diagnosis), indent=2) if arguments.json else "\n".join(show.text_lines(diagnosis)))
    return OK


def _evidence_of(file: str) -> str:
    """A log may hold any bytes; what is no UTF-8 is replaced."""
    try:
        return (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{file} could not be read ({error.strerror})") from None


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Pages of causes that are gone are taken away."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.md"):
            if old.name not in pages:
                old.unlink()
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder} could not be written ({error.strerror})") from None


def add_report(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = verbs.add_parser(
        "report",
        help="rebuild a run's reports from its result files",
        description="Reads DIR/*.json; prints the summary, and writes index.html, junit.xml and failed.args beside them. "
        "Exit 0; 1: a file could not be read, the others are reported; 2: wrong use.",
    )
    report.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="a run's results, such as reports/latest")
    report.add_argument("--schema", action="store_true", help="print the JSON Schema of a result file, and nothing else")
    report.set_defaults(run=report_folder)


def report_folder(arguments: argparse.Namespace) -> int:
    from bringup.report.fleet import fleet_files
    from bringup.report.stored import json_schema, read_results
    from bringup.report.text import summary_lines

    if arguments.schema:
        print(json.dumps(json_schema(), indent=2))
        return OK
    folder: Path | None = arguments.folder
    if folder is None or not folder.is_dir():
        raise UserError(f"{folder or 'nothing'} is not a folder: name one with a run's results, such as reports/latest")
    texts, problems = {}, []
    for path in sorted(folder.glob("*.json")):
        try:
            texts[path.name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path.name} could not be read ({getattr(error, 'strerror', None) or 'it is no UTF-8 text'})")
    results, wrong = read_results(texts)
    problems += wrong
    for problem in problems:
        print(f"bringup: {problem}", file=sys.stderr)
    if not results:
        raise UserError(f"{folder} has no result file that can be read: name the folder of one run, such as reports/latest")
    try:
        for name, text in fleet_files(results).items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder} could not be written ({error.strerror})") from None
    executed = any(each.ended != "planned" for each in results)
    print("\n".join(summary_lines(results, executed=executed, where=str(folder))))
    return FINDINGS if problems else OK


def add_catalog(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    catalog = verbs.add_parser("catalog", help="the curated data that decisions are made from")
    actions = catalog.add_subparsers(metavar="ACTION", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--folder", type=Path, help="a folder with the catalog's files (default: the ones that are installed)")
    common.add_argument(
        "--today", type=date.fromisoformat, default=date.today(), metavar="DAY", help="judge ages as of 2026-11-30"
    )
    check = actions.add_parser("check", parents=[common], help="does the catalog agree with itself? exit 1 if it does not")
    check.set_defaults(run=catalog_check)
    show = actions.add_parser("show", parents=[common], help="print an entry")
    show.add_argument("kind", choices=("gpu", "driver", "cuda", "image", "distro"))
    show.add_argument("key", nargs="+", help="10de:2335, 10de:25b6/14a9 or a GPU's name; 580; 13.0; an image's name; debian 12")
    show.set_defaults(run=catalog_show)
    images = actions.add_parser(
        "images",
        parents=[common],
        help="the curated images, and which of them a GPU and a driver can run",
        description="Exit 0: at least one of them runs; 1: none; 2: wrong use.",
    )
    images.add_argument(
        "--gpu", action="append", default=[], help="H100, 'H200 SXM 141GB' or 10de:2335 (repeatable: all of a host)"
    )
    images.add_argument("--driver", metavar="VERSION", help="580.159.04, or 580 for the newest of a branch")
    images.add_argument("--arch", choices=("x86_64", "aarch64"), default="x86_64", help="of the host (default: x86_64)")
    images.add_argument("--flavour", choices=("base", "runtime", "devel"), help="only these")
    images.set_defaults(run=catalog_images)


def catalog_at(folder: Path | None) -> Catalog:
    from bringup.catalog import load

    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name one with gpus.yml and the other files of the catalog")
    return load(folder)


def catalog_check(arguments: argparse.Namespace) -> int:
    from bringup.catalog import CatalogError
    from bringup.catalog.check import check

    catalog = catalog_at(arguments.folder)
    try:
        findings = check(catalog, arguments.today)
    except CatalogError as error:
        print(f"error: {error}")
        return FINDINGS
    for finding in findings:
        print(finding.line)
    errors = sum(finding.level == "error" for finding in findings)
    print(f"{errors} errors, {len(findings) - errors} warnings")
    return FINDINGS if errors else OK


def catalog_show(arguments: argparse.Namespace) -> int:
    from bringup.catalog.show import show

    print(show(catalog_at(arguments.folder), arguments.kind, " ".join(arguments.key), arguments.today), end="")
    return OK


def catalog_images(arguments: argparse.Namespace) -> int:
    from bringup.report.images import driver_called, gpus_called, image_lines

    if arguments.gpu and arguments.driver is None:
        raise UserError("--gpu needs --driver, such as --driver 580: what an image can run on is asked of both")
    catalog = catalog_at(arguments.folder)
    boards = [board for each in arguments.gpu for board in gpus_called(each, catalog)]
    driver = driver_called(arguments.driver, catalog) if arguments.driver is not None else None
    lines = list(image_lines(catalog, boards, driver, arguments.arch, arguments.flavour))
    print("\n".join(lines))
    return OK if driver is None or any("  yes  " in line for line in lines) else FINDINGS
