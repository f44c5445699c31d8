"""The evidence of an inventory's hosts, and what the doctor says of it."""

from __future__ import annotations

import json
from pathlib import Path

from pyinfra import logger, state

from bringup.doctor import diagnose, from_mapping
from bringup.doctor.show import text_lines
from deploys.ending import file_name
from facts import live
from facts.evidence import HostEvidence

_seen: set[str] = set()
TIMEOUT_S = 300


def examine() -> None:
    """Examine the current host. The last one ends the run: nothing can be executed, with -y or without."""
    this = live.current_host()
    _seen.add(this.name)
    evidence = this.get_fact(HostEvidence, _ignore_errors=True, _timeout=TIMEOUT_S)
    if evidence:
        folder = Path(str(this.data.get("gpu_reports", "reports"))) / "evidence"
        folder.mkdir(parents=True, exist_ok=True)
        bundle = folder / f"{file_name(this.name)}.json"
        bundle.write_text(json.dumps(evidence, indent=2) + "\n")
        found = diagnose(from_mapping(evidence))
        said = ["no cause of trouble that is known"] if found.unknown else text_lines(found)
        print("\n".join([f"{this.name} (evidence: {bundle})", *(f"    {line}" for line in said)]))
    else:
        logger.error(f"--> {this.name}: the host gave no evidence")
    if all(each.name in _seen for each in state.activated_hosts):
        raise SystemExit(0)
