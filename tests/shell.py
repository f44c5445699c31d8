"""A shell to run what operations send, on this machine in a folder of the test's own, with fake tools."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pyinfra.api import StringCommand


class Shell:
    """Runs commands in `folder`; fake tools write what they were called with to `calls`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir()

    def tool(self, name: str, script: str = "") -> None:
        (self.bin / name).write_text(
            f'#!/bin/sh\n{{ printf "%s" "${{0##*/}}"; for each; do printf "[%s]" "$each"; done; echo; }} >>{self.folder}/calls\n{script}\n'
        )
        (self.bin / name).chmod(0o755)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def run(self, command: StringCommand | str, *arguments: str, lines: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
        text = command if isinstance(command, str) else command.get_raw_value()
        lines = lines if isinstance(command, str) else command.connector_arguments.get("_stdin", [])
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        given = "".join(f"{line}\n" for line in lines)
        return subprocess.run(
            ["sh", "-c", text, "sh", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            env=env,
            input=given,
        )
