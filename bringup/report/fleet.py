"""Results of a run -> the files that stand beside the hosts' own: for CI, for a browser, and for another run."""

from __future__ import annotations

from collections.abc import Sequence

from bringup.report import HostResult
from bringup.report.html import page
from bringup.report.junit import junit


def fleet_files(results: Sequence[HostResult]) -> dict[str, str]:
    """File name -> text. `failed.args` selects the hosts that have to be run again: `pyinfra … $(cat failed.args)`."""
    return {"junit.xml": junit(results), "index.html": page(results), "failed.args": failed_arguments(results)}


def failed_arguments(results: Sequence[HostResult]) -> str:
    """One `--limit HOST` a line; nothing where all is well. A shell splits it at blanks: host names have none."""
    return "".join(f"--limit {each.host}\n" for each in results if not each.ok)
