"""Is an image quick to start? Counted and measured by a probe inside of it. This changes nothing.

Asked alone, without image, it takes the host's proof image from its provenance:

    pyinfra inventories/cluster.py fact facts.images.ImageWarmth --json
"""

from __future__ import annotations

import json
from typing import TypedDict

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override

from bringup import probes
from bringup.references import familiar
from bringup.steps.provenance import PATH
from facts.provenance import FROM_PROVENANCE

MEASURE_LIMIT_S = 600  # of one container; torch from a cold disk takes a minute, and is imported four times

# $1 image, or empty: then from the provenance. $2 the probe. Prints its line, then the seconds of a
# whole `docker run` that imports torch.
MEASURE = (
    FROM_PROVENANCE
    + rf"""
image=$1; [ -n "$image" ] || image=$(from_provenance proof_image)
[ -n "$image" ] || {{ echo "problem no image is named, and {PATH} names none"; exit 0; }}
run() {{ timeout {MEASURE_LIMIT_S} docker run --rm -i --runtime runc --network none --pull never --entrypoint python3 "$image" "$@"; }}
said=$(printf '%s\n' "$2" | run - 2>&1) || {{ echo "problem $said" | tr '\n' ' '; exit 0; }}
printf '%s\n' "$said" | tail -n 1
began=$(date +%s%N)
run -c 'import torch' </dev/null >/dev/null 2>&1 && echo "$began $(date +%s%N)" | awk '{{ printf "%.3f\n", ($2 - $1) / 1e9 }}'
true
"""
)


class Warmth(TypedDict, total=False):
    """What bringup/probes/import_time.py prints, and `docker_run_s`, the whole of a `docker run`. `failed`: why nothing was measured."""

    module: str
    python: str
    cache: str
    dont_write_bytecode: bool
    modules: int
    valid: int
    stale: int
    missing: int
    import_s: list[float]
    interpreter_s: list[float]
    docker_run_s: float | None
    failed: str | None


class ImageWarmth(FactBase[Warmth]):
    """Seconds that importing torch takes in an image, and how many of the modules have no valid .pyc file.

    + image: reference that is on the host, or None for the provenance's
    """

    @override
    def command(self, image: str | None = None) -> StringCommand:
        given = (familiar(image) if image else "", probes.source("import_time"))
        return StringCommand("sh", "-c", QuoteString(MEASURE), "sh", *(QuoteString(each) for each in given))

    @override
    def process(self, output: list[str]) -> Warmth:
        return parse_warmth(output)


def parse_warmth(output: list[str]) -> Warmth:
    """From the probe's line and the seconds below it; anything else is why nothing was measured."""
    try:
        found: Warmth = json.loads(output[0])
        return {**found, "docker_run_s": float(output[1]) if len(output) > 1 else None}
    except (ValueError, LookupError, TypeError):
        if any('exec: "python3"' in line for line in output):
            return {"failed": "it has no python3"}
        return {"failed": " ".join(output).removeprefix("problem ").strip()[-200:] or "it said nothing"}
