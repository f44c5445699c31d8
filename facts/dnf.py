"""What an rpm repository offers."""

from __future__ import annotations

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from facts.packages import Index, read_index_lines

# Reads a source's key and index into folders of its own, without plugins (version locks among them): nothing of the host's dnf is
# touched, and no lock is waited for. module_hotfixes: all packages are seen, whichever module stream is enabled.
INDEX_SCRIPT = r"""
url=$1 key_url=$2; shift 2
LC_ALL=C; export LC_ALL
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/parts" "$work/cache" "$work/state" "$work/log"
if ! said=$(curl -fsSL --retry 2 --connect-timeout 20 --max-time 60 -o "$work/key" "$key_url" 2>&1); then
    printf '%s\n' "$said" | sed 's/^/key-problem /'; exit 0
fi
printf 'key %s\n' "$(base64 <"$work/key" | tr -d '\n')"
dnf_() { dnf --noplugins --setopt=reposdir="$work/parts" --setopt=cachedir="$work/cache" --setopt=persistdir="$work/state" \
    --setopt=logdir="$work/log" --repofrompath=gpu-bringup,"$url" --repo=gpu-bringup --setopt=gpu-bringup.skip_if_unavailable=0 \
    --setopt=gpu-bringup.retries=2 --setopt=gpu-bringup.timeout=20 --setopt=gpu-bringup.module_hotfixes=1 "$@" 2>"$work/said"; }
query() { dnf_ repoquery --showduplicates --qf 'version %{name} %{epoch}:%{version}-%{release}' "$@"; }
if ! offered=$(query "$@"); then sed 's/^/index-problem /' "$work/said"; exit 0; fi
printf '%s\n' "$offered" | grep '^version '
dnf_ module list nvidia-driver | sed -n 's/^nvidia-driver  *\([^ ]*\) .*/stream \1/p'
"""


class RpmIndex(FactBase[Index]):
    """What an rpm repository would offer, read before anything is changed for it."""

    @override
    def command(self, url: str, key_url: str, packages: list[str]) -> StringCommand:
        given = (url, key_url, *packages)
        return StringCommand("sh", "-c", QuoteString(INDEX_SCRIPT), "sh", *(QuoteString(each) for each in given))

    @override
    def process(self, output: list[str]) -> Index:
        return read_index_lines(output)
