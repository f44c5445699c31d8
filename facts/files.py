"""Text of a file of ours on the host."""

from __future__ import annotations

from pyinfra.api import FactBase, QuoteString, StringCommand
from typing_extensions import override


class FileText(FactBase[str | None]):
    """The file's text; None where there is none that can be read.

    + path: absolute
    """

    @override
    def command(self, path: str) -> StringCommand:
        return StringCommand("cat", "--", QuoteString(path), "2>/dev/null && echo . || true")

    @override
    def process(self, output: list[str]) -> str | None:
        return "\n".join(output[:-1]) + "\n" if output and output[-1] == "." else None
