"""apt's lists of sources: what would stop every apt run is known before one starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from bringup.policy import Refused
from bringup.survey import Survey
from bringup.target import Repository, Target

LINE = re.compile(r"deb(?:-src)?\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<url>\S+)\s+(?P<rest>\S.*)")


class Entry(NamedTuple):
    """One address and suite of a file; `signed_by`: the keyring that it names."""

    file: str
    url: str
    suite: str
    signed_by: str | None


def refuse_broken_lists(survey: Survey) -> None:
    """A file that is no list of sources (an error page saved as one), or two entries that contradict each other: apt then reads none.

    Raises Refused.
    """
    for file, text in sorted(survey["packages"]["repositories"].items()):
        if isinstance(text, str) and file.endswith((".list", ".sources")):
            wrong = _first_wrong_line(text, deb822=file.endswith(".sources"))
            if wrong is not None:
                reason = f"{file} is no list of package sources (it has the line {wrong[:60]!r}), and apt stops at it"
                raise Refused("broken-source-list", reason, "remove or mend that file")
    known: dict[tuple[str, str], Entry] = {}
    for entry in entries(survey):
        other = known.setdefault((entry.url, entry.suite), entry)
        if other.signed_by != entry.signed_by:
            reason = f"{other.file} and {entry.file} name {entry.url} with different keys (Signed-By), and apt stops at that"
            raise Refused("clashing-source-lists", reason, "remove one of the two entries")


def refuse_clashing_lists(survey: Survey, target: Target) -> None:
    """An entry of somebody else's for an address that is to be added with another key. Raises Refused."""
    wanted: list[Repository | None] = [target.docker.repository]
    wanted += [target.driver.repository] if target.driver else []
    wanted += [target.toolkit.repository] if target.toolkit else []
    for repository in filter(None, wanted):
        for entry in entries(survey) if repository.family == "apt" else ():
            if entry.file != repository.sources_file and _is_same(entry, repository) and entry.signed_by != repository.keyring:
                key = f"the key {entry.signed_by}" if entry.signed_by else "no key"
                reason = f"{entry.file} names {entry.url} with {key}, and apt stops when {repository.keyring} is named for it too"
                raise Refused("clashing-source-lists", reason, "remove that entry, it is added anew")


def _is_same(entry: Entry, repository: Repository) -> bool:
    return (entry.url, entry.suite) == (_plain(repository.url), repository.suite)


def entries(survey: Survey) -> Iterator[Entry]:
    """Every entry of apt's lists that is switched on."""
    for file, text in sorted(survey["packages"]["repositories"].items()):
        if not isinstance(text, str):
            continue
        if file.endswith(".list"):
            for line in text.splitlines():
                found = LINE.match(line.strip())
                if found:
                    key = re.search(r"signed-by=(\S+)", found["options"] or "")
                    yield Entry(file, _plain(found["url"]), found["rest"].split()[0], key[1] if key else None)
        elif file.endswith(".sources"):
            for block in re.split(r"\n\s*\n", text):
                fields = {
                    name.lower(): value.strip()
                    for name, value in re.findall(r"^([A-Za-z-]+):[ \t]*(.*(?:\n[ \t].*)*)$", block, re.M)
                }
                if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
                    continue
                for url in fields.get("uris", "").split():
                    for suite in fields.get("suites", "").split():
                        yield Entry(file, _plain(url), suite, fields.get("signed-by") or None)


def _plain(url: str) -> str:
    return url.rstrip("/") + "/"


def _first_wrong_line(text: str, *, deb822: bool) -> str | None:
    for line in text.splitlines():
        plain = line.strip()
        if not plain or plain.startswith("#") or (deb822 and line[0] in " \t"):
            continue
        if not (re.match(r"[A-Za-z][A-Za-z-]*:", plain) if deb822 else re.match(r"deb(-src)?\s", plain)):
            return plain
    return None
