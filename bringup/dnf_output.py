"""From what dnf printed to one sentence on why it did not install something, and to the foreign repositories that it had to pass over."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bringup.index import reason


def problem(said: str, extra_repositories: Sequence[str] = ()) -> str:
    """`extra_repositories`: of the distribution, which what the packages depend on comes from."""
    if "nothing provides dkms" in said:
        names = " and ".join(extra_repositories) or "the repository that has it"
        return f"dkms, which builds the module, is in no enabled repository: enable {names} on the host, then run again"
    unsigned = re.search(r"Failing package is: (\S+)", said) or re.search(r"Package (\S+) is not (?:correctly )?signed", said)
    if unsigned:
        return f"{unsigned[1].rstrip(':')} is not signed by the key of its repository: nothing was installed; is the mirror a whole copy?"
    filtered = re.search(r"filtered out by (exclude|modular) filtering for argument: (\S+)", said)
    if filtered:
        by = {
            "exclude": "a version lock or an exclude= of this host's own (dnf versionlock list; grep -r exclude /etc/dnf /etc/yum.repos.d)",
            "modular": "the module streams that are enabled (dnf module list --enabled)",
        }[filtered[1]]
        return f"{filtered[2]} is hidden by {by}"
    nothing = re.findall(r"No match for argument: (\S+)", said)
    if any(each.startswith("kernel") and re.search(r"-\d", each) for each in nothing):
        way = "install the newest kernel (dnf upgrade kernel), reboot, then run again"
        return f"no enabled repository has {', '.join(nothing)}, which belongs to the running kernel: {way}"
    if nothing:
        return f"no enabled repository has {', '.join(nothing)}"
    conflict = re.search(
        r"(?m)^\s*-? *((?:package|problem with installed package) .*conflicts with .*|.* more space (?:needed )?on .*)$", said
    )
    needs = re.search(r"(?m)^\s*- (nothing provides .*)$", said)
    found = conflict or needs
    return found[1].strip()[:300] if found else reason(said)


def passed_over(said: str) -> list[str]:
    """Repositories of others that dnf could not read and left out, and files that it could not make sense of."""
    ignored = [name.strip() for line in re.findall(r"(?m)^Ignoring repositories: (.*)$", said) for name in line.split(",")]
    return [*ignored, *re.findall(r"failed loading '([^']+)'", said)]
