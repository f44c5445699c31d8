"""What a lab host holds, to compare before and after something that may change nothing."""

from __future__ import annotations

import shlex

from .lab.host import Host

# Not /var/log, /var/cache and /run; not Docker's own folders, in which every container that is started leaves a trace.
_FOLDERS = ("/boot", "/etc", "/home", "/lib", "/opt", "/root", "/srv", "/usr", "/var/lib/apt", "/var/lib/dpkg", "/var/spool")
# What every login, sudo, and boot touches.
_RESTLESS = (
    *("/var/lib/dpkg/lock", "/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock", "/etc/mtab", "/etc/.pwd.lock"),
    *("/root/.rpmdb/rpmdb.sqlite-shm", "/root/.rpmdb/rpmdb.sqlite-wal"),  # also by a mere query
)
_LISTING = f"""
find {shlex.join(_FOLDERS)} -xdev \\( -path '*/__pycache__' -prune -o -printf '%p\\t%y %m %U:%G %s %T@ %l\\n' \\) 2>/dev/null
if command -v dpkg-query >/dev/null; then
    dpkg-query --show --showformat 'package ${{Package}}\\t${{Version}} ${{db:Status-Abbrev}}\\n'
    apt-mark showhold | sed 's/$/\\theld/; s/^/hold /'
else # dnf's holds and streams are files of /etc
    rpm -qa --queryformat 'package %{{NAME}}-%{{EVR}}\\t%{{ARCH}}\\n'
fi
sed 's/ .*/\\tloaded/; s/^/module /' /proc/modules 2>/dev/null || :
"""

State = dict[str, str]


def host_state(host: Host) -> State:
    """Files (type, mode, owner, size, time of the last change, link), packages, holds and kernel modules, each with what it is."""
    lines = host.run(_LISTING, sudo=True, timeout_s=120).stdout.splitlines()
    pairs = (line.partition("\t") for line in lines)
    return {name: value for name, _, value in pairs if name not in _RESTLESS}


def changes(before: State, after: State) -> list[str]:
    """What has come, gone and changed, one line each."""
    lines = [f"new: {name}" for name in after if name not in before]
    lines += [f"gone: {name}" for name in before if name not in after]
    lines += [
        f"changed: {name} ({before[name]} -> {after[name]})" for name in before if name in after and before[name] != after[name]
    ]
    return sorted(lines)
