"""The evidence of an inventory's hosts, and what the doctor says of it."""

from __future__ import annotations

import json
from pathlib import Path

from pyinfra import state
from pyinfra.api import Host

from bringup.doctor import diagnose, from_mapping
from bringup.doctor.show import text_lines
from deploys.ending import file_name
from facts import live
from facts.evidence import HostEvidence

TIMEOUT_S = 300

_said: dict[str, list[str]] = {}
_silent: set[str] = set()


def examine() -> None:
    """Examine the current host. The last one prints all and ends the run: nothing can be executed, with -y or without.

    Exit 0 when every host gave its evidence, whatever it shows; else 1.
    """
    this = live.current_host()
    _said[this.name] = _examined(this)
    if any(each.name not in _said for each in state.activated_hosts):
        return
    for each in state.inventory:
        if state.is_host_in_limit(each) and each.name not in _said:
            _silent.add(each.name)
            _said[each.name] = [f"{each.name}: the host could not be reached"]
    for name in sorted(_said):
        print("\n".join(_said[name]))
    raise SystemExit(1 if _silent else 0)


def _examined(this: Host) -> list[str]:
    evidence = this.get_fact(HostEvidence, _ignore_errors=True, _timeout=TIMEOUT_S)
    if not evidence:
        _silent.add(this.name)
        return [f"{this.name}: the host gave no evidence"]
    folder = Path(str(this.data.get("gpu_reports", "reports"))) / "evidence"
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / f"{file_name(this.name)}.json"
    bundle.write_text(json.dumps(evidence, indent=2) + "\n", encoding="utf-8")
    found = diagnose(from_mapping(evidence))
    said = ["no cause of trouble that is known"] if found.unknown else text_lines(found)
    return [f"{this.name} (evidence: {bundle})", *(f"    {line}" for line in said)]
