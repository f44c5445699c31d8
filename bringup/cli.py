"""The `bringup` command. One function a verb; what a verb needs is imported when it runs, so that `--help` is quick."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bringup import __version__
from bringup.errors import UserError

if TYPE_CHECKING:
    from bringup.catalog import Catalog

OK, FINDINGS, WRONG_USE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 in order, 1 found what must be mended, 2 wrong use, with one sentence on stderr."""
    arguments = parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except UserError as error:
        print(f"bringup: {error}", file=sys.stderr)
        return WRONG_USE
    return code


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="bringup", description="From a fresh VM to a proven GPU host: what is decided, and why.")
    top.add_argument("--version", action="version", version=f"bringup {__version__}")
    verbs = top.add_subparsers(metavar="VERB", required=True)
    add_catalog(verbs)
    return top


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
