"""The keys that sign the lab's repositories: made once and kept in CACHE, so that repositories that were built stay valid."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import cgroup
from .cached import move_into_place
from .command import remove, run
from .paths import CACHE

_NAMES = {
    "driver": "Stand-in for cudatools <driver@example.invalid>",
    "toolkit": "Stand-in for NVIDIA CORPORATION <toolkit@example.invalid>",
    "other": "Stand-in for somebody else <other@example.invalid>",
    "rocky": "Stand-in for Rocky Enterprise Software Foundation <rocky@example.invalid>",
    "docker": "Stand-in for Docker Release <docker@example.invalid>",
    "expired": "",
}
"""By the key's name in the lab. `expired` is `driver` in a copy that expired right after it was made: of the same fingerprint."""

GOOD = ("driver", "toolkit")


def make_key(name: str, group: Path) -> str:
    """The fingerprint of a signing key, made if need be. group: the control group in which gpg's agent ends."""
    home = CACHE / "keys" / name
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=home.parent) as scratch:
            if name == "expired":
                _copy_expired(Path(scratch), group)
            else:
                generate = ["--quick-generate-key", _NAMES[name], "ed25519", "sign", "never"]
                run(cgroup.entering(group, [*_command(Path(scratch)), *generate]))
            Path(scratch, "fingerprint").write_text(_listed(Path(scratch), group, "fpr", 9))
            shutil.copytree(scratch, f"{scratch}.key", ignore=shutil.ignore_patterns("S.*"))
            move_into_place(Path(f"{scratch}.key"), home)
    return fingerprint(name)


def fingerprint(name: str) -> str:
    return (CACHE / "keys" / name / "fingerprint").read_text()


def export(name: str, group: Path, target: Path, *, armor: bool = True) -> None:
    """The public key into a file."""
    _gpg(name, group, *(["--armor"] if armor else []), "--output", str(target), "--export")


def sign(name: str, group: Path, *arguments: str) -> None:
    """gpg with this key; arguments say what it signs, and how."""
    home = CACHE / "keys" / name
    when = ["--faked-system-time", (home / "created").read_text()] if name == "expired" else []
    _gpg(name, group, *when, *arguments)


def sign_rpms(name: str, group: Path, files: Sequence[str]) -> None:
    """rpmsign with this key; the files are written anew."""
    home = CACHE / "keys" / name
    extra = '--batch --pinentry-mode loopback --passphrase ""'
    extra += f" --faked-system-time {(home / 'created').read_text()}" if name == "expired" else ""
    macros = {"__gpg": "/usr/bin/gpg", "_gpg_name": fingerprint(name), "_gpg_path": str(home), "_gpg_sign_cmd_extra_args": extra}
    options = [word for macro, value in macros.items() for word in ("--define", f"{macro} {value}")]
    run(cgroup.entering(group, ["rpm", *options, "--addsign", *files]), timeout_s=120)


def _copy_expired(scratch: Path, group: Path) -> None:
    make_key("driver", group)
    shutil.copytree(CACHE / "keys" / "driver", scratch, dirs_exist_ok=True, ignore=shutil.ignore_patterns("S.*"))
    created = _listed(scratch, group, "pub", 5)
    expire = ["--faked-system-time", created, "--quick-set-expire", fingerprint("driver"), "seconds=1"]
    run(cgroup.entering(group, [*_command(scratch), *expire]))
    (scratch / "created").write_text(created)


def _listed(home: Path, group: Path, record: str, field: int) -> str:
    listing = run(cgroup.entering(group, [*_command(home), "--with-colons", "--list-keys"]))
    return next(fields[field] for fields in (line.split(":") for line in listing.splitlines()) if fields[0] == record)


def _gpg(name: str, group: Path, *arguments: str) -> None:
    target = arguments[arguments.index("--output") + 1]
    remove(Path(target))
    run(cgroup.entering(group, [*_command(CACHE / "keys" / name), *arguments]))


def _command(home: Path) -> list[str]:
    return ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
