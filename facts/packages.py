"""What the package manager holds, and what a repository offers."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from bringup.survey import LockHolder

LOCKS_SCRIPT = Path(__file__).with_name("package_locks.sh")
DKMS_FAILURE = Path(__file__).with_name("dkms_failure.sh").read_text()

# Reads a source's key and index into folders of its own: nothing of the host's apt is touched, and no lock is needed.
INDEX_SCRIPT = r"""
url=$1 suite=$2 component=$3 key_url=$4; shift 4
LC_ALL=C; export LC_ALL
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"; mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/parts"
if ! said=$(/usr/lib/apt/apt-helper -o Acquire::Retries=2 -o Acquire::http::Timeout=20 download-file "$key_url" "$work/key" 2>&1); then
    printf '%s\n' "$said" | sed 's/^/key-problem /'; exit 0
fi
printf 'key %s\n' "$(base64 <"$work/key" | tr -d '\n')"
keyring=$work/key.gpg; grep -q 'BEGIN PGP' "$work/key" && keyring=$work/key.asc
mv "$work/key" "$keyring"; chmod 644 "$keyring"
printf 'deb [signed-by=%s] %s %s %s\n' "$keyring" "$url" "$suite" "$component" >"$work/sources.list"
apt_() { program=$1; shift; "$program" -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts="$work/parts" \
    -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@"; }
if ! said=$(apt_ apt-get -q update -eany 2>&1); then printf '%s\n' "$said" | sed 's/^/index-problem /'; exit 0; fi
apt_ apt-cache madison "$@" | sed -n 's/^ *\([^ |]*\) *| *\([^ |]*\) *|.*/version \1 \2/p'
"""


class PackageLocks(FactBase[list[LockHolder]]):
    """Who holds locks of the package manager now; [] when nobody does. Needs root to see all of them."""

    default = list

    @override
    def command(self) -> str:
        return f"{LOCKS_SCRIPT.read_text()}\npackage_locks"

    @override
    def process(self, output: list[str]) -> list[LockHolder]:
        found = []
        for line in output:
            file, pid, command = line.split(" ", 2)
            found.append(LockHolder(file=file, pid=int(pid), command=command))
        return found


class Index(TypedDict):
    """A source's key (base64), why key or index could not be had (apt's or dnf's words), the versions of the packages asked for.

    `streams`: of dnf's module nvidia-driver.
    """

    key: str | None
    key_problem: str | None
    index_problem: str | None
    versions: dict[str, list[str]]
    streams: list[str]


def read_index_lines(output: list[str]) -> Index:
    """What the scripts of both families print."""
    index = Index(key=None, key_problem=None, index_problem=None, versions={}, streams=[])
    problems: dict[str, list[str]] = {"key-problem": [], "index-problem": []}
    for line in output:
        what, _, rest = line.partition(" ")
        if what == "key":
            index["key"] = rest
        elif what in problems:
            problems[what].append(rest)
        elif what == "version":
            name, version = rest.split(" ")
            index["versions"].setdefault(name, []).append(version)
        elif what == "stream":
            index["streams"].append(rest)
    index["key_problem"] = "\n".join(problems["key-problem"]) or None
    index["index_problem"] = "\n".join(problems["index-problem"]) or None
    return index


class RepositoryIndex(FactBase[Index]):
    """What an apt repository would offer, read before anything is changed for it."""

    @override
    def command(self, url: str, suite: str, component: str | None, key_url: str, packages: list[str]) -> StringCommand:
        given = (url, suite, component or "", key_url, *packages)
        return StringCommand("sh", "-c", QuoteString(INDEX_SCRIPT), "sh", *(QuoteString(each) for each in given))

    @override
    def process(self, output: list[str]) -> Index:
        return read_index_lines(output)


# what apt would install of each, from the lists that it has: NAME VERSION; the first line says that it answered
OFFERED_SCRIPT = r"""
options=$1; shift
# shellcheck disable=SC2086 # a list of options without blanks
said=$(LC_ALL=C apt-cache $options policy "$@" 2>/dev/null) || exit 0
echo answered; printf '%s\n' "$said" |
    awk '/^[^ ].*:$/ {name = $1; sub(/:$/, "", name)} $1 == "Candidate:" && $2 != "(none)" {print name, $2}'
"""


class PackagesOffered(FactBase[dict[str, str] | None]):
    """The version of each package that apt would install now; without those that it has nowhere. None where apt does not say.

    + options: for apt, where it shall not read all of its sources
    """

    @override
    def command(self, packages: list[str], options: list[str] | None = None) -> StringCommand:
        given = (QuoteString(each) for each in (" ".join(options or []), *packages))
        return StringCommand("sh", "-c", QuoteString(OFFERED_SCRIPT), "sh", *given)

    @override
    def process(self, output: list[str]) -> dict[str, str] | None:
        return dict(line.split(" ", 1) for line in output[1:]) if output[:1] == ["answered"] else None
