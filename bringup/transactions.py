"""What a package manager would do, from its own trial: `apt-get --simulate`, dnf's table of a transaction."""

from __future__ import annotations

import re

_APT = re.compile(r"^Inst linux-image-(?:unsigned-)?(\d\S*) ", re.M)
# ` kernel-core   x86_64   5.14.0-611.9.1.el9_7   baseos   18 M`; also kernel-64k-core (Arm), kernel6.12 (Amazon), kernel-default (SUSE)
_DNF = re.compile(r"^ kernel[\d.]*(?:-(?:64k|rt|uek|default))?(?:-core)? +(\S+) +(?:\d+:)?(\S+) ")


def kernels_brought(said: str, running: str) -> list[str]:
    """Releases of kernels that would be installed or upgraded, other than the one that runs: with one of them booted next, the module may
    be missing."""
    found = _APT.findall(said)
    section = ""
    for line in said.splitlines():
        if re.match(r"[A-Z][\w ]*:$", line):
            section = line
        elif (match := _DNF.match(line)) and section.startswith(("Installing", "Upgrading")):
            found.append(f"{match[2]}.{match[1]}")
    return [each for each in dict.fromkeys(found) if each != running]


def refusal_of_kernels(said: str, running: str) -> str | None:
    """One sentence where the trial would bring another kernel, None where it would not."""
    names = kernels_brought(said, running)
    if not names:
        return None
    reason = f"with these packages the kernel {' and '.join(names)} would come, while {running} runs"
    return f"{reason}: nothing was installed; install that kernel with its headers, boot it, and run this again"
