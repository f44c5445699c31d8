"""What the doctor wants to know of a host, in one exchange: files and what commands say, with secrets masked."""

from __future__ import annotations

from pathlib import Path

from pyinfra.api import FactBase
from pyinfra.api.exceptions import FactProcessError
from typing_extensions import override

from bringup.doctor.masking import masked
from facts.as_text import as_text

LIMIT_S = 10  # for each command
BEGIN, END = "@@gpu-bringup-evidence 1", "@@end"


class HostEvidence(FactBase[dict[str, str]]):
    """An evidence bundle, `{"$ uname -r": "6.8.0-60-generic", "/etc/docker/daemon.json": "{…}"}`; a source that is not there is left out.

    Changes nothing. Fails that host alone when the output is not whole.
    """

    @override
    def command(self) -> str:
        return as_text((Path(__file__).parent / "evidence.sh").read_text().replace("@LIMIT_S@", str(LIMIT_S)))

    @override
    def process(self, output: list[str]) -> dict[str, str]:
        lines = list(output)
        if BEGIN not in lines or END not in lines:
            raise FactProcessError("the evidence is not whole: the connection was cut, or the host has no POSIX shell")
        found: dict[str, list[str]] = {}
        current: list[str] = []
        for line in lines[lines.index(BEGIN) + 1 : lines.index(END)]:
            if line.startswith("@@"):
                current = found.setdefault(line[2:], [])
            elif line.startswith("|"):
                current.append(line[1:])
        return {source: masked("\n".join(text) + "\n") for source, text in found.items()}
