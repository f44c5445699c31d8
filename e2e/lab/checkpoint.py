"""Keeping what a host's disk holds at one moment, and bringing the host back to it in seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .command import remove, run
from .errors import LabError
from .host import Host


def checkpoint(host: Host, name: str = "converged") -> None:
    """Keeps the host's disk as it is now. A host that is on has its power cut and is switched on again; does not wait until it answers.

    Kept until the host is destroyed. LabError when there is one of this name already.
    """
    folder = _folder(host, name)
    if folder.exists():
        raise LabError(f"host {host.name} has a checkpoint {name!r} already: use another name")
    was_on = host.is_on()
    host.power_off()
    scratch = folder.with_name(f".{name}.new")
    remove(scratch)
    scratch.mkdir()
    # Docker's folder cannot lie on an overlay, so it is copied. The upper layer is hundreds of megabytes and is not: the host goes on
    # with an empty one on top of it.
    run(["cp", "-a", "--reflink=auto", str(host.folder / "docker"), str(scratch)], timeout_s=300)
    (host.folder / "upper").rename(scratch / "upper")
    scratch.rename(folder)
    setup = host.read_setup()
    host.write_setup(replace(setup, layers=[str(folder / "upper"), *setup.layers]))
    host.write_setup(host.read_setup(), folder)
    (host.folder / "upper").mkdir(mode=0o755)
    if was_on:
        host.power_on()


def restore(host: Host, name: str = "converged") -> None:
    """Cuts the host's power, brings its disk back to the checkpoint and switches it on; does not wait until it answers."""
    folder = _folder(host, name)
    if not folder.exists():
        raise LabError(f"host {host.name} has no checkpoint {name!r}: it has {', '.join(checkpoints(host)) or 'none'}")
    host.power_off()
    for part in ("upper", "docker"):
        remove(host.folder / part)
    run(["cp", "-a", "--reflink=auto", str(folder / "docker"), str(host.folder)], timeout_s=300)
    (host.folder / "upper").mkdir(mode=0o755)
    host.write_setup(host.read_setup(folder))
    host.power_on()


def checkpoints(host: Host) -> list[str]:
    """The names of the host's checkpoints, sorted."""
    return sorted(path.name for path in (host.folder / "checkpoints").glob("[!.]*"))


def _folder(host: Host, name: str) -> Path:
    return host.folder / "checkpoints" / name
