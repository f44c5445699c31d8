"""Relations of Docker's daemon.json: what it says against the unit's flags, and whether it can be read at all."""

from __future__ import annotations

import json
import re

from bringup.dockerd import BOTH_PLACES, KEYS, flag_keys
from bringup.doctor.facts import Facts
from bringup.doctor.relations.registry import relation


@relation
def key_in_file_and_flag(facts: Facts) -> list[str]:
    flags = flag_keys(facts.unit_flags)
    both = [key for key in facts.daemon or {} if key in flags and key not in BOTH_PLACES and key != "hosts"]
    return [f"{key}: in daemon.json, and as {flags[key]} in docker.service" for key in both]


@relation
def hosts_in_file_and_flag(facts: Facts) -> list[str]:
    flags = flag_keys(facts.unit_flags)
    return (
        [f"hosts: in daemon.json, and as {flags['hosts']} in docker.service"]
        if "hosts" in (facts.daemon or {}) and "hosts" in flags
        else []
    )


def _error(facts: Facts) -> tuple[str, str] | None:
    """(what the parser says, the line at fault) of a daemon.json that is no JSON."""
    text = (facts.daemon_text or "").lstrip("\ufeff")
    if not text.strip():
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        lines = text.split("\n")
        return f"line {error.lineno}: {error.msg}", lines[min(error.lineno, len(lines)) - 1].strip()
    except (ValueError, RecursionError):
        return "nested too deep", ""
    return None if isinstance(value, dict) else ("it is no object", text.strip()[:80])


def _has_comment(text: str) -> bool:
    return bool(re.search(r"^\s*(?://|/\*|#)|[\]},\"]\s*//\s|,\s*[}\]]", text, re.M))


@relation
def daemon_json_is_no_json(facts: Facts) -> list[str]:
    error = _error(facts)
    return [f"daemon.json, {error[0]}: {error[1]}"] if error and not _has_comment(facts.daemon_text or "") else []


@relation
def daemon_json_with_comments(facts: Facts) -> list[str]:
    error = _error(facts)
    return [f"daemon.json, {error[0]}: {error[1]}"] if error and _has_comment(facts.daemon_text or "") else []


@relation
def daemon_json_with_bom(facts: Facts) -> list[str]:
    return ["daemon.json begins with a byte order mark"] if (facts.daemon_text or "").startswith("\ufeff") else []


@relation
def daemon_json_is_empty(facts: Facts) -> list[str]:
    text = facts.daemon_text
    if text is not None and not text.strip("\ufeff \t\r\n"):
        return ["daemon.json is empty"]
    size = facts.command(r"^(?:stat|wc|ls -l).*daemon\.json") or ""
    found = re.search(r"^\s*0\b.*$|^-\S+ \d+ \S+ \S+ 0 .*$", size, re.M)
    return [f"daemon.json has 0 bytes: {found[0].strip()}"] if found else []


@relation
def daemon_json_key_unknown(facts: Facts) -> list[str]:
    unknown = [key for key in facts.daemon or {} if key not in KEYS]
    return [f"daemon.json has {', '.join(unknown)}: dockerd knows no such option"] if unknown else []
