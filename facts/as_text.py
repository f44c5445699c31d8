"""What a script prints, as UTF-8 whatever the host's files hold: pyinfra's reader ends at the first byte that is none."""

from __future__ import annotations

# iconv comes with glibc; it tells of what it left out by its status, which is nobody's
TO_TEXT = "if command -v iconv >/dev/null 2>&1; then iconv -c -f UTF-8 -t UTF-8 2>/dev/null || :; else cat; fi"


def as_text(script: str) -> str:
    """The script with other bytes left out of its output; its exit status is lost: the script's last line must say that it is whole."""
    return f"{{\n{script}\n}} | {{ {TO_TEXT}; }}"
