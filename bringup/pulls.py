"""Before and during a pull: is there room, when is it tried again, what is said of its progress. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bringup.survey import Disk

BACK_OFF_S = (5, 15, 45, 90)  # between attempts; Docker itself tries each layer five times over a minute before
STALL_S = 300  # without a byte or a layer more, an attempt is given up
BYTES_PER_FILE = 32 << 10  # of a PyTorch image: 7.4 GB in about 200,000 inodes, of which a third are folders and links
LAGS = 0.5  # of the median share: a host that is behind the others


def lack_of_room(wanted: Iterable[tuple[str, int, float]], disk: Disk, root: str) -> str | None:
    """Why images cannot be pulled onto the disk of Docker's root, or None. Sizes and counts that are not known are not judged.

    + wanted: reference, compressed bytes, unpacked over compressed: both lie on the disk while an image is pulled
    """
    images = list(wanted)
    compressed = sum(size for _, size, _ in images)
    unpacked = sum(size * ratio for _, size, ratio in images)
    names, need = ", ".join(name for name, _, _ in images), compressed + unpacked
    way = "make room, or give Docker another data-root in gpu_docker_options"
    if disk["free_kib"] is not None and disk["free_kib"] * 1024 < need:
        parts = f"{gigabytes(compressed)} compressed and {gigabytes(unpacked)} unpacked"
        return f"{gigabytes(disk['free_kib'] * 1024)} free on {root}, {gigabytes(need)} are needed for {names} ({parts}): {way}"
    files = int(unpacked / BYTES_PER_FILE)
    if disk["free_inodes"] is not None and disk["free_inodes"] < files:
        return f"{disk['free_inodes']} inodes free on {root}, about {files} are needed for {names}: {way}"
    return None


@dataclass(frozen=True)
class Progress:
    """One host's pull: layers, and bytes as they come over the network. `total` is None until it is known."""

    layers: int = 0
    finished: int = 0
    got: int = 0
    total: int | None = None
    note: str = ""

    @property
    def share(self) -> float:
        """0 to 1, by bytes where they are known, else by layers."""
        if self.total:
            return min(1.0, self.got / self.total)
        return self.finished / self.layers if self.layers else 0.0


def parse_progress(line: str, total: int | None) -> Progress:
    """From `LAYERS FINISHED GOT SEEN NOTE…`, what the host's script writes; + total: the sum from the registry's manifest."""
    words = line.split(None, 4)
    if len(words) < 4 or not all(each.isdigit() for each in words[:4]):
        return Progress(total=total)
    layers, finished, got, seen = map(int, words[:4])
    return Progress(layers, finished, got, total if total is not None else seen or None, words[4] if len(words) > 4 else "")


def host_line(reference: str, now: Progress, speed: float) -> str:
    """What is said of one host; + speed: bytes a second."""
    size = f"{gigabytes(now.got)} of {gigabytes(now.total)}" if now.total else gigabytes(now.got)
    is_coming = not now.total or now.got < now.total  # a speed of what has come would fall while layers are unpacked
    pace = f", {gigabytes(speed)}/s" if is_coming else ""
    left = f", {(now.total - now.got) / speed:.0f} s left" if now.total and is_coming and speed > 0 else ""
    note = f", {now.note}" if now.note else ""
    return f"pulling {reference}: {size}, {now.finished} of {now.layers or '?'} layers{pace}{left}{note}"


def fleet_line(hosts: dict[str, Progress], waiting: int, speed: float) -> str:
    """What is said of many hosts in one line: how far they are together, and which are behind; + speed: of all, bytes a second."""
    shares = sorted(each.share for each in hosts.values())
    median = shares[len(shares) // 2] if shares else 0.0
    behind = sorted((each.share, name) for name, each in hosts.items() if each.share < median * LAGS)
    lag = f"; behind: {', '.join(f'{name} {share:.0%}' for share, name in behind[:5])}" if behind else ""
    more = f" and {len(behind) - 5} more" if len(behind) > 5 else ""
    wait = f", {waiting} wait" if waiting else ""
    mean = sum(shares) / len(shares) if shares else 0.0
    got, total = sum(each.got for each in hosts.values()), sum(each.total or 0 for each in hosts.values())
    size = f" ({gigabytes(got)} of {gigabytes(total)})" if total else ""
    layers = f"{sum(each.finished for each in hosts.values())} of {sum(each.layers for each in hosts.values())} layers"
    return f"pulling on {len(hosts)} hosts{wait}: {mean:.0%}{size}, {layers}, {gigabytes(speed)}/s together{lag}{more}"


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.0f} kB"
