"""pyinfra, with a record of what it sends: `python -m benchmarks.recorded FILE ARGUMENTS…`. One JSON line for each exchange with a host."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

# what a command spends its time on, the first that fits
KINDS = (
    ("survey", re.compile("@@gpu-bringup-survey")),
    ("packages", re.compile(r"\bapt-get |\bapt-mark |\bdpkg --configure|\bdkms install")),
    ("other", re.compile("")),
)


def kind_of(command: str) -> str:
    return next(kind for kind, pattern in KINDS if pattern.search(command))


def main(file: Path) -> None:
    from pyinfra.connectors.ssh import SSHConnector
    from pyinfra_cli.main import main as run  # type: ignore[import-untyped]

    send = SSHConnector.run_shell_command

    def recorded(self: SSHConnector, command: Any, *given: Any, **arguments: Any) -> Any:
        began = time.perf_counter()
        output = None
        try:
            success, output = send(self, command, *given, **arguments)
            return success, output
        finally:
            line = {
                "kind": kind_of(text := command.get_raw_value() if hasattr(command, "get_raw_value") else str(command)),
                "seconds": time.perf_counter() - began,
                "sent": len(text.encode()),
                "received": sum(len(each.line.encode()) + 1 for each in output.combined_lines) if output else 0,
            }
            with file.open("a", encoding="utf-8") as record:
                record.write(json.dumps(line) + "\n")

    SSHConnector.run_shell_command = recorded  # type: ignore[method-assign]
    run()


if __name__ == "__main__":
    main(Path(sys.argv.pop(1)))
