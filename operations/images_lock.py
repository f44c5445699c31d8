"""images.lock.yml on the control machine: read, and changed by one writer at a time, of this run and of others."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import gevent
from gevent.lock import RLock
from pyinfra import logger
from pyinfra.api import Host

from bringup.errors import HostError, UserError
from bringup.images_lock import Locked, Platform, lock_text, parse_lock

WAIT_S = 60.0  # for another run, which holds it for milliseconds
_writing = RLock()


def read_lock(path: str) -> dict[str, Locked]:
    """{} where there is none yet. Raises UserError."""
    try:
        return parse_lock(Path(path).read_text(), path)
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise UserError(f"{path} cannot be read (it is no UTF-8 text)") from None
    except (OSError, ValueError) as error:  # ValueError: no file can have such a name
        raise UserError(f"{path!r} of gpu_images_lock cannot be read ({getattr(error, 'strerror', None) or error})") from None


def locked(path: str) -> dict[str, Locked]:
    """read_lock in the middle of a run, where it fails the host. Raises HostError."""
    try:
        return read_lock(path)
    except UserError as error:
        raise HostError(str(error)) from None


def remember(host: Host, name: str, found: Locked, path: str) -> None:
    """Into the lock file, at once and whole; what others have added meanwhile stays. Raises HostError."""
    try:
        with _writing, _alone(Path(path)):
            entries = locked(path)
            old = entries.get(name)
            if old is not None and old.digest != found.digest:
                host.log(f"{name} has moved: it was {old.digest}, it is {found.digest} now", logger.warning)
            if old is not None and (old.digest, old.platforms) == (found.digest, {**old.platforms, **found.platforms}):
                return
            entries[name] = found if old is None or old.digest != found.digest else replace(old, platforms=_merged(old, found))
            _write(Path(path), lock_text(entries))
    except OSError as error:
        raise HostError(f"{path} cannot be written ({error.strerror}): name another place in gpu_images_lock") from None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Among all runs on this machine. The folder is what is locked: the file itself is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise HostError(
                        f"{path} was not free for {WAIT_S:.0f} s: another run on this machine holds its folder; end it, or wait"
                    ) from None
                gevent.sleep(0.05)
        yield
    finally:
        os.close(folder)


def _write(path: Path, text: str) -> None:
    """On the disk before it has its name: after a loss of power there is the old file or the new one."""
    scratch = path.with_name(f".{path.name}.new")
    with scratch.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def _merged(old: Locked, found: Locked) -> Mapping[str, Platform]:
    return {
        **old.platforms,
        **{arch: each for arch, each in found.platforms.items() if each != Platform() or arch not in old.platforms},
    }
