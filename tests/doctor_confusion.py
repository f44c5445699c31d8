"""`python -m tests.doctor_confusion`: which cause each case gives, how sure the doctor was, and the near misses of each common message."""

from __future__ import annotations

import json
from collections import Counter

from bringup.doctor import diagnose, load_causes, read_evidence
from tests.doctor_cases import cases, common_messages


def first(evidence: dict[str, str]) -> tuple[str, str]:
    """(the first cause, the confidence in it)."""
    found = diagnose(read_evidence([json.dumps(evidence)])).causes
    return (found[0].cause.id, found[0].confidence) if found else ("unknown", "")


def main() -> None:
    table = Counter((cause, *first(evidence)) for cause, evidence in cases())
    for (cause, found, confidence), count in sorted(table.items()):
        print(f"{cause:<40} {found:<40} {confidence:<7} {count}{'' if cause == found else '   <- another cause'}")
    print("\nNear misses: the same message, other facts, so another cause")
    near = right_near = 0
    for common in common_messages():
        print(f"{common.message.splitlines()[0][:130]}")
        for number, (cause, evidence) in enumerate(common.cases()):
            found, confidence = first(evidence)
            near += bool(number)
            right_near += bool(number) and cause == found
            facts = ", ".join(each for each in evidence if each != "message") or ("another message" if number else "alone")
            print(f"    {cause:<36} {found:<36} {confidence:<7} {facts}{'' if cause == found else '   <- another cause'}")
    right = sum(count for (cause, found, _), count in table.items() if cause == found)
    sure = sum(count for (cause, found, confidence), count in table.items() if cause != found and confidence == "high")
    print(f"\n{right} of {table.total()} cases give their cause first; {sure} give another one with high confidence")
    print(f"{len({cause for cause, _, _ in table})} of {len(load_causes())} causes have a case")
    least = min(len(each.beside) for each in common_messages())
    print(
        f"{right_near} of {near} near misses of {len(common_messages())} common messages give theirs; each message has at least {least}"
    )


if __name__ == "__main__":
    main()
