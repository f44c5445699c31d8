"""`python -m tests.doctor_confusion`: which cause each case gives, where it is not the expected one, and how sure the doctor was."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import yaml

from bringup.doctor import diagnose, load_causes, read_evidence

FILES = ("visible.yml", "new.yml", "unseen.yml")


def main() -> None:
    table: Counter[tuple[str, str, str]] = Counter()
    expected = set()
    for name in FILES:
        for case in yaml.safe_load((Path(__file__).parent / "causes" / name).read_text()):
            found = diagnose(read_evidence([json.dumps(case["evidence"])])).causes
            first = (found[0].cause.id, found[0].confidence) if found else ("unknown", "")
            table[case["cause"], *first] += 1
            expected.add(case["cause"])
    for (cause, found_id, confidence), count in sorted(table.items()):
        mark = "" if cause == found_id else "   <- another cause"
        print(f"{cause:<40} {found_id:<40} {confidence:<7} {count}{mark}")
    right = sum(count for (cause, found_id, _), count in table.items() if cause == found_id)
    print(f"{right} of {table.total()} cases give their cause first; {len(expected)} of {len(load_causes())} causes have a case")


if __name__ == "__main__":
    main()
