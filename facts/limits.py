"""Limits as they arrive where they count: at a login, in a unit of systemd's, in a container as somebody else than root."""

from __future__ import annotations

import re
from typing import TypedDict

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from facts.in_container import GIVEN, script

LIMIT_S = 60  # one start of a container that runs a shell
# by the kernel's own words, since shells differ in what their ulimit knows
SHOW = (
    'while IFS= read -r line; do case $line in "Max locked memory"*|"Max open files"*) printf "%s\\n" "$line" ;; esac; '
    "done </proc/self/limits"
)
SCRIPT = (
    GIVEN
    + rf"""
show='{SHOW}'
of() {{ # WHERE COMMAND...
    where=$1; shift
    if said=$(timeout {LIMIT_S} "$@" "$show" 2>&1); then printf '%s\n' "$said" | sed "s/^/$where /"
    else printf '%s problem %s\n' "$where" "$(printf '%s\n' "$said" | tail -n 1)"; fi
}}
of unit systemd-run --quiet --collect --pipe --wait sh -c
of user docker run --rm --name "$name" --runtime runc --network none --pull never --user 1000:1000 --entrypoint sh "$image" -c
"""
)
LINE = re.compile(r"(\w+) Max (locked memory|open files)\s+(\S+)\s+(\S+)")


class Found(TypedDict):
    """Soft and hard limits in bytes and files as text, or `unlimited`; `problem`: why there are none."""

    memlock: list[str]
    open_files: list[str]
    problem: str | None


class LimitsInPlace(FactBase[dict[str, Found]]):
    """`unit`: a unit of systemd's; `user`: a container, as user 1000.

    + image: reference that is on the host, or None for the provenance's
    """

    @override
    def command(self, image: str | None = None) -> StringCommand:
        return script(SCRIPT, image, "runtime")  # whose flags are not used

    @override
    def process(self, output: list[str]) -> dict[str, Found]:
        return found(output)


class LoginLimits(FactBase[dict[str, Found]]):
    """`login`: of the user who is logged in. To be asked without sudo, which gives root's."""

    @override
    def command(self) -> StringCommand:
        return StringCommand("sh", "-c", QuoteString(f"({SHOW}) | sed 's/^/login /'"))

    @override
    def process(self, output: list[str]) -> dict[str, Found]:
        return found(output)


def found(output: list[str]) -> dict[str, Found]:
    places: dict[str, Found] = {}
    for line in output:
        where, _, rest = line.partition(" ")
        place = places.setdefault(where, Found(memlock=[], open_files=[], problem=None))
        limits = LINE.match(line)
        if limits:
            place["memlock" if limits[2] == "locked memory" else "open_files"] = [limits[3], limits[4]]
        elif rest.startswith("problem "):
            place["problem"] = rest.removeprefix("problem ")
    return places
