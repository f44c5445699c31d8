"""Package sources as the host has them: parsed, and held against the ones that we need.

Formats: sources.list(5), one-line style (*.list) and deb822 style (*.sources); the sections of dnf and zypper (*.repo).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bringup.survey import Unreadable
from bringup.target import Repository

ONE_LINE = re.compile(
    r"^(deb|deb-src)\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>(?:\s+[^\s#]+)*)\s*(?:#.*)?$"
)
# what NVIDIA's own instructions of the past left: other names for the same sources, or pages saved in a list's place
LEFTOVERS = ("nvidia-docker", "nvidia-container-runtime", "libnvidia-container", "nvidia-container-toolkit", "cuda-")
OURS = "gpu-bringup-"


@dataclass(frozen=True)
class Entry:
    """One enabled source: a place in a file, and what it says. `lines`: its 0-based first and last line in the file."""

    path: str
    lines: tuple[int, int]
    uri: str
    suite: str
    signed_by: str | None


@dataclass(frozen=True)
class Broken:
    """A file that apt cannot read: it stops every apt command, not only those for this source."""

    path: str
    line: int  # 1-based
    text: str


@dataclass(frozen=True)
class Clash:
    """An entry of somebody else's for one of our sources: apt would accept none of the two, dnf would take packages from either. `lines`
    None: the whole file."""

    path: str
    lines: tuple[int, int] | None
    why: str


def parse_file(path: str, text: str) -> tuple[list[Entry], Broken | None]:
    """The enabled entries of one file, and the first place that apt cannot read."""
    if path.endswith(".repo"):
        return _sections(path, text), None
    return _deb822(path, text) if path.endswith(".sources") else _one_line(path, text)


def _one_line(path: str, text: str) -> tuple[list[Entry], Broken | None]:
    entries: list[Entry] = []
    for number, line in enumerate(text.splitlines()):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        found = ONE_LINE.match(stripped)
        if found is None:
            return entries, Broken(path, number + 1, stripped[:80])
        options = dict(each.partition("=")[::2] for each in (found["options"] or "").split())
        entries.append(Entry(path, (number, number), found["uri"], found["suite"], options.get("signed-by")))
    return entries, None


def _deb822(path: str, text: str) -> tuple[list[Entry], Broken | None]:
    entries: list[Entry] = []
    fields: dict[str, str] = {}
    first, last_name = 0, ""
    lines = [*text.splitlines(), ""]
    for number, line in enumerate(lines):
        if line.startswith("#"):
            continue
        if not line.strip():
            entries += _stanza(path, (first, number - 1), fields)
            fields, first, last_name = {}, number + 1, ""
        elif line[0] in " \t" and last_name:
            fields[last_name] += "\n" + line.strip()
        elif re.match(r"[A-Za-z-]+:", line):
            name, _, value = line.partition(":")
            last_name = name.lower()
            fields[last_name] = value.strip()
        else:
            return entries, Broken(path, number + 1, line.strip()[:80])
    return entries, None


def _stanza(path: str, lines: tuple[int, int], fields: Mapping[str, str]) -> list[Entry]:
    if not fields.get("uris") or fields.get("enabled", "yes").lower() in ("no", "false", "without", "off", "disable"):
        return []
    signed_by = fields.get("signed-by")
    key = signed_by if signed_by and signed_by.startswith("/") else "(a key in the file itself)" if signed_by else None
    return [Entry(path, lines, uri, suite, key) for uri in fields["uris"].split() for suite in fields.get("suites", "/").split()]


def _sections(path: str, text: str) -> list[Entry]:
    """dnf's: the signer is its gpgkey, and nobody where gpgcheck is off."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("[")]
    entries = []
    for first, after in zip(starts, [*starts[1:], len(lines)], strict=True):
        fields = dict(re.findall(r"(?m)^(\w+)\s*=\s*(.*?)\s*$", "\n".join(lines[first:after])))
        off = ("0", "no", "false", "off")
        if fields.get("enabled", "1").lower() in off or not fields.get("baseurl"):
            continue
        signer = None if fields.get("gpgcheck", "1").lower() in off else fields.get("gpgkey")
        entries += [Entry(path, (first, after - 1), uri, "/", signer) for uri in fields["baseurl"].split()]
    return entries


def is_signed_alike(entry: Entry, repository: Repository) -> bool:
    """By our keyring; for dnf, which knows keys by their fingerprints, also by the key at its owner's address."""
    return entry.signed_by in (repository.keyring, f"file://{repository.keyring}", repository.key_url)


def normal(uri: str) -> str:
    """One spelling for one place: without scheme, default port, trailing slash, and the placeholders of apt and dnf for an architecture."""
    bare = re.sub(r"^https?://", "", uri.lower()).replace("$(arch)", "amd64").replace("$basearch", "x86_64")
    return re.sub(r":(80|443)(?=/|$)", "", bare).rstrip("/")


def is_for(entry: Entry, repository: Repository) -> bool:
    return normal(entry.uri) == normal(repository.url) and entry.suite.strip("/") == repository.suite.strip("/")


def clashes(files: Mapping[str, str | Unreadable], wanted: Iterable[Repository]) -> list[Clash]:
    """What must be disabled before our sources can be added, with the reason. Files of ours are never among them."""
    found: list[Clash] = []
    repositories = list(wanted)
    for path, text in files.items():
        name = path.rsplit("/", 1)[-1]
        if isinstance(text, dict) or name.startswith(OURS) or not path.endswith((".list", ".sources", ".repo")):
            continue
        entries, broken = parse_file(path, text)
        if broken is not None and name.startswith(LEFTOVERS):
            found.append(Clash(path, None, f"line {broken.line} is no source: {broken.text!r}"))
            continue
        for entry in entries:
            for repository in repositories:
                if is_for(entry, repository) and not is_signed_alike(entry, repository):
                    other = entry.signed_by or "no key of its own"
                    found.append(
                        Clash(path, entry.lines, f"the same source ({entry.uri}) with {other} in place of {repository.keyring}")
                    )
    return found


def broken_files(files: Mapping[str, str | Unreadable]) -> list[Broken]:
    """Files that stop apt as a whole, leftovers of NVIDIA's aside (those are clashes)."""
    found = []
    for path, text in files.items():
        if path.endswith((".list", ".sources")) and isinstance(text, str) and not path.rsplit("/", 1)[-1].startswith(LEFTOVERS):
            broken = parse_file(path, text)[1]
            if broken is not None:
                found.append(broken)
    return found


def without(text: str, clash: Clash) -> str | None:
    """The file's text with the clashing entry as a comment; None where nothing else is in it, so that the file goes as a whole."""
    if clash.lines is None:
        return None
    first, last = clash.lines
    lines = text.splitlines()
    changed = [
        f"# disabled by gpu-bringup: {line}" if first <= number <= last and line.strip() else line
        for number, line in enumerate(lines)
    ]
    kept = [
        line for number, line in enumerate(lines) if not first <= number <= last and line.strip() and not line.startswith("#")
    ]
    return "\n".join(changed) + "\n" if kept else None
