"""The curated images as a table: which of them a GPU and a driver can run, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bringup.catalog import Catalog, Gpu
from bringup.catalog.images import Image
from bringup.errors import UserError, nearest
from bringup.policy.fit import Fit, Loaded, fit
from bringup.policy.gpus import unusable

FLAVOURS = {
    "base": "CUDA's runtime library alone: to check a host, or for static programs",
    "runtime": "with the libraries that programs need (cuBLAS, cuDNN, NCCL, PyTorch): to run",
    "devel": "with compilers and headers besides: to build extensions",
}
MAKERS = {"nvidia", "geforce", "tesla", "quadro"}  # words of names that people leave out
HEAD = ("IMAGE", "CUDA", "TORCH", "FLAVOUR", "SIZE", "RUNS", "WHY")


def gpus_called(word: str, catalog: Catalog) -> tuple[Gpu, ...]:
    """`H100` is every H100 of the catalog, `H200 SXM 141GB` one, `10de:2335` by its PCI id. Raises UserError."""
    wanted = _words(word)
    by_id = catalog.gpu_candidates(word.casefold()) if ":" in word else ()
    found = by_id or tuple(each for each in catalog.gpus if wanted and wanted <= _words(each.name))
    if not found:
        known = {name for each in catalog.gpus for name in (each.name, *each.name.split())}
        raise UserError(f"the catalog has no GPU {word!r}{nearest(word, sorted(known))}")
    return tuple(each for each in found if wanted == _words(each.name)) or found  # an RTX 3090 is no RTX 3090 Ti


def _words(name: str) -> set[str]:
    return set(name.casefold().replace("(", " ").replace(")", " ").split()) - MAKERS


def driver_called(word: str, catalog: Catalog) -> Loaded:
    """`580` or `580.159.04`. Raises UserError."""
    found = Loaded.of(word, catalog)
    if found is None:
        numbers = [str(each.number) for each in catalog.branches]
        raise UserError(f"the catalog has no driver {word!r}: give a branch or a version of {', '.join(numbers)}")
    return found


def image_lines(
    catalog: Catalog, gpus: Iterable[Gpu], driver: Loaded | None, arch: str, flavour: str | None = None
) -> Iterator[str]:
    """A row an image; without a driver, only what is in it. Below the table, what flavours are for and whom it is of."""
    boards = tuple(gpus)
    undriven = unusable(driver.branch, boards, catalog) if driver is not None else None
    rows: list[tuple[str, ...]] = []
    for image in catalog.images:
        if flavour is None or image.flavour == flavour:
            found = fit(image, driver, boards, arch, catalog) if driver is not None else None
            found = Fit(False, undriven) if undriven is not None else found
            rows.append(
                (image.name, image.cuda, (image.torch or "-").split("+")[0], image.flavour, size(image, catalog), *_answer(found))
            )
    head = HEAD if driver is not None else HEAD[:5]
    rows = [row[: len(head)] for row in rows]
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    for row in (head, *rows):
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    yield from (f"{name}: {what}" for name, what in FLAVOURS.items() if flavour in (None, name))
    yield f"sizes: compressed / on the disk; ? is not known, and taken as {catalog.default_unpack_ratio:g} × compressed"
    if boards:
        yield f"for {', '.join(each.name for each in boards)} on {arch}"


def _answer(found: Fit | None) -> tuple[str, str]:
    if found is None:
        return "", ""
    return {True: "yes", False: "no", None: "?"}[found.runs], found.why


def size(image: Image, catalog: Catalog) -> str:
    """`3.1 / 7.4 GB`."""
    compressed = f"{image.compressed_bytes / 1e9:.1f}" if image.compressed_bytes else "?"
    unpacked = f"{image.unpacked_gb.value:.1f}" if image.unpacked_gb else "?"
    if unpacked == "?" and image.compressed_bytes:
        unpacked = f"{image.compressed_bytes * (image.unpack_ratio or catalog.default_unpack_ratio) / 1e9:.1f}"
    return f"{compressed} / {unpacked} GB"
