"""The Debian mirror that this machine uses, and what else its apt needs to reach it: hosts must take the same way."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .command import run
from .errors import LabError

# Settings of apt that decide whether a mirror can be reached and trusted; the others are the machine's own taste.
_CARRIED = re.compile(r'Acquire::(https?::|Check-|Retries|ForceIPv|Max-FutureTime)\S* "[^"]+";')


@dataclass(frozen=True)
class Mirror:
    debian: str
    """Base address that has dists/bookworm, without a slash at the end."""
    security: str
    """Base address that has dists/bookworm-security."""
    apt_settings: str
    """Text of an apt.conf.d file, may be empty."""
    certificates: tuple[Path, ...]
    """The machine's own certificate authorities."""


@cache
def read_mirror() -> Mirror:
    """Reads this machine's apt configuration. LabError when it names no Debian mirror."""
    targets = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Identifier: Packages"])
    debian, security = choose(targets)
    settings = apt_settings(run(["apt-config", "dump"]), dict(os.environ))
    certificates = tuple(sorted(Path("/usr/local/share/ca-certificates").glob("*.crt")))
    return Mirror(debian, security, settings, certificates)


def choose(targets: str) -> tuple[str, str]:
    """The addresses of Debian's archive and of its security archive, from lines `ADDRESS SUITE`."""
    found: dict[str, str] = {}
    for line in targets.splitlines():
        address, suite = line.split()
        name = re.fullmatch(r"(?:bookworm|trixie|forky|sid|testing|unstable|(?:old)?stable)(-security)?", suite)
        if name:
            found.setdefault("security" if name[1] else "debian", _resolve(address).rstrip("/"))
    if "debian" not in found:
        raise LabError(
            "this machine's apt knows no Debian mirror to make the lab's hosts from: add one to /etc/apt/sources.list.d"
        )
    return found["debian"], found.get("security", f"{found['debian']}-security")


def _resolve(address: str) -> str:
    # Debian's cloud images name a file that lists mirrors
    if address.startswith("mirror+file:"):
        lines = Path(address.removeprefix("mirror+file:").rstrip("/")).read_text().split("\n")
        return next((line.split()[0] for line in lines if line.strip() and not line.startswith("#")), address)
    return address


def apt_settings(dump: str, environment: dict[str, str]) -> str:
    """The lines of `apt-config dump` that a host needs too, and the proxies that apt would take from the environment."""
    lines = [line for line in dump.splitlines() if _CARRIED.fullmatch(line)]
    for scheme in ("http", "https"):
        proxy = environment.get(f"{scheme}_proxy")
        if proxy and not any(line.startswith(f"Acquire::{scheme}::Proxy ") for line in lines):
            lines.append(f'Acquire::{scheme}::Proxy "{proxy}";')
    return "".join(f"{line}\n" for line in lines)
