"""Which ways of asking Docker for GPUs work on a host."""

from __future__ import annotations

from pyinfra.api import FactBase, StringCommand
from typing_extensions import override

from bringup.docker_ways import WAYS
from facts.in_container import CONTAINER_LIMIT_S, GIVEN, script
from facts.verification import docker_reason

# each way as `way NAME`, then what docker said, each line after a bar
SCRIPT = GIVEN + "".join(
    rf"""
echo 'way {name}'
timeout {CONTAINER_LIMIT_S} docker run --rm --name "$name" --network none --pull never {options} "$image" nvidia-smi -L 2>&1 </dev/null |
    sed 's/^/|/'
"""
    for name, options in WAYS.items()
)


class DockerWays(FactBase[dict[str, int | str]]):
    """name of a way (bringup.docker_ways.WAYS) -> how many GPUs a container sees by it, or why there is none.

    + image: reference that is on the host, or None for the provenance's
    """

    @override
    def command(self, image: str | None = None) -> StringCommand:
        return script(SCRIPT, image, "runtime")  # whose flags are not used

    @override
    def process(self, output: list[str]) -> dict[str, int | str]:
        said: dict[str, list[str]] = {}
        for line in output:
            if line.startswith("way "):
                said[line.removeprefix("way ")] = []
            elif said and line.startswith("|"):
                said[next(reversed(said))].append(line[1:])
        return {name: seen(lines) for name, lines in said.items()}


def seen(lines: list[str]) -> int | str:
    """From what `docker run … nvidia-smi -L` printed."""
    count = sum(line.startswith("GPU ") for line in lines)
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
    return count or docker_reason("\n".join(lines)) or last[:300]
