"""Reading single values of the host's provenance in sh: ours has one top-level key a line."""

from __future__ import annotations

from bringup.steps.provenance import PATH

# `from_provenance KEY` prints a text value; nothing where there is no such file or key
FROM_PROVENANCE = rf"""
from_provenance() {{ sed -n "s/^  \"$1\": \"\(.*\)\",\{{0,1\}}$/\1/p" {PATH} 2>/dev/null; }}
"""
