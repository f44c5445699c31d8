"""Writing files: in one exchange, moved into place whole, with the content on standard input and in no argument list."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Iterable, Iterator

from pyinfra import logger, state
from pyinfra.api import QuoteString, StringCommand
from pyinfra.api.command import PyinfraCommand

from facts.live import current_host


def write_file(path: str, text: str, mode: str = "644") -> StringCommand:
    """A new file or new content. `files.put` under sudo needs five exchanges and leaves the content readable for a moment."""
    return write_bytes(path, text.encode(), mode)


def write_bytes(path: str, content: bytes, mode: str = "644") -> StringCommand:
    """The same for any bytes: they travel as base64, so that no shell, locale or line end changes them."""
    new = QuoteString(f"{path}.gpu-bringup-new")
    return StringCommand(
        "umask 077 && mkdir -p -m 755", QuoteString(path.rsplit("/", 1)[0]), "&& base64 -d >", new,
        "&& chmod", mode, new, "&& mv -f", new, QuoteString(path),
        _stdin=base64.encodebytes(content).decode().splitlines(),
    )  # fmt: skip


def note(path: str, names: Iterable[str]) -> Iterator[PyinfraCommand]:
    """Names to the end of one of our files in /etc/gpu-bringup, one a line."""
    quoted = [QuoteString(each) for each in names]
    if quoted:
        yield StringCommand("mkdir -p -m 755 /etc/gpu-bringup && printf '%s\\n'", *quoted, ">>", path)


def show_diff(path: str, old: str | None, new: str) -> None:
    """With `--diff`: what will change in a file."""
    if not state.config.DIFF:
        return
    for line in difflib.unified_diff((old or "").splitlines(), new.splitlines(), path, path, lineterm=""):
        current_host().log_styled(line, fg={"+": "green", "-": "red"}.get(line[:1], "white"), log_func=logger.info)
