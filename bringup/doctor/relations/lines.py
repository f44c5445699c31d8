"""What most relations end with: the text that shows them, or nothing."""

from __future__ import annotations

import re


def matched(pattern: str, text: str, flags: re.RegexFlag = re.M) -> list[str]:
    """The first match, without the space around it; [] where there is none."""
    found = re.search(pattern, text, flags)
    return [found[0].strip()] if found else []
