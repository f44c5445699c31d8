"""The image that the lab's hosts are proven with: Debian's Python and the stand-in torch, as an OCI layout, built without a Docker engine.

Two layers, each kept in CACHE under a hash of what goes into it: Debian's packages (a quarter of a minute), and torch (nothing).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import cgroup
from .cached import move_into_place
from .command import run, say
from .mirror import Mirror, read_mirror
from .network import Network
from .packages import STANDINS
from .paths import CACHE

NAME = "gpu-bringup-lab/pytorch"
TAG = "2.11.0-cuda13.0-standin"
_SUITE = "bookworm"
_PACKAGES = "python3-minimal,libpython3-stdlib"
_LEFT_OUT = (
    "/usr/share/man/*",
    "/usr/share/locale/*",
    "/usr/share/doc/*",
    "/usr/share/i18n/*",
    "/usr/lib/x86_64-linux-gnu/gconv/*",
)
# without it Debian 12 merges /usr by a package that draws in all of perl
_MERGED_USR = "/usr/share/mmdebstrap/hooks/maybe-merged-usr"
_TORCH_AT = "usr/local/lib/python3.11/dist-packages"
_CREATED = "2026-11-01T00:00:00Z"
_OCI = "application/vnd.oci.image"
_CONFIG = {
    "Env": [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "NVIDIA_VISIBLE_DEVICES=all",
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        "PYTORCH_VERSION=2.11.0",
    ],
    "Cmd": ["bash"],
    "Labels": {"org.opencontainers.image.title": "stand-in for a PyTorch image, of a test lab with simulated GPUs"},
}


@dataclass(frozen=True)
class _Layer:
    diff_id: str
    """sha256:... of the tar."""
    blob: Path
    """The same, compressed."""


def build_image(network: Network) -> Path:
    """The OCI layout of the image, in CACHE. LabError when Debian's packages cannot be had."""
    mirror = read_mirror()
    folder = CACHE / "image"
    folder.mkdir(parents=True, exist_ok=True)
    base = _base_layer(network, mirror, folder)
    sources = sorted((STANDINS / "torch").rglob("*.py"))
    parts = [base.diff_id, Path(__file__).read_text(), *(f"{path.name} {path.read_text()}" for path in sources)]
    layout = folder / hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    if not layout.exists():
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
            torch = _torch_layer(sources, Path(scratch, "torch.tar.gz"))
            _write_layout(Path(scratch, "layout"), [base, torch])
            move_into_place(Path(scratch, "layout"), layout)
    return layout


def digest(layout: Path) -> str:
    """sha256:... by which the image is pulled."""
    return str(json.loads((layout / "index.json").read_text())["manifests"][0]["digest"])


def _base_layer(network: Network, mirror: Mirror, folder: Path) -> _Layer:
    command = ["mmdebstrap", "--variant=essential", f"--include={_PACKAGES}", f"--hook-dir={_MERGED_USR}"]
    command += [f"--dpkgopt={option}" for option in ("force-unsafe-io", *(f"path-exclude={path}" for path in _LEFT_OUT))]
    sources = [
        f"deb {mirror.debian} {_SUITE} main",
        f"deb {mirror.debian} {_SUITE}-updates main",
        f"deb {mirror.security} {_SUITE}-security main",
    ]
    recipe = repr((command, sources, mirror.apt_settings)).encode()
    kept = folder / f"base-{hashlib.sha256(recipe).hexdigest()[:12]}"
    if not kept.exists():
        say("building the image's base from Debian's packages (a quarter of a minute; once)")
        # in a mount namespace of its own and in the lab's control group, so that nothing of it stays when it is killed
        group = cgroup.make(network.cgroup / "build-image")
        try:
            with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
                Path(scratch).chmod(0o755)  # for apt's own user
                settings, tar = Path(scratch, "apt.conf"), Path(scratch, "base.tar")
                settings.write_text(mirror.apt_settings)
                build = ["env", f"TMPDIR={scratch}", "LC_ALL=C.UTF-8", "unshare", "--mount", "--propagation", "private", *command]
                build += [f"--aptopt={settings}"] if mirror.apt_settings else []
                run(cgroup.entering(group, [*build, _SUITE, str(tar), *sources]), timeout_s=600)
                layer = Path(scratch, "layer")
                layer.mkdir()
                _compress(tar.read_bytes(), layer / "layer.tar.gz")
                (layer / "diff_id").write_text(_sha256(tar.read_bytes()))
                move_into_place(layer, kept)
        finally:
            cgroup.remove(group)
    return _Layer((kept / "diff_id").read_text(), kept / "layer.tar.gz")


def _torch_layer(sources: list[Path], target: Path) -> _Layer:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for path in sources:
            text = path.read_bytes()
            entry = tarfile.TarInfo(f"{_TORCH_AT}/{path.relative_to(STANDINS / 'torch')}")
            entry.size, entry.mode, entry.mtime = len(text), 0o644, 1764000000
            tar.addfile(entry, io.BytesIO(text))
    _compress(content.getvalue(), target)
    return _Layer(_sha256(content.getvalue()), target)


def _write_layout(layout: Path, layers: list[_Layer]) -> None:
    (layout / "blobs" / "sha256").mkdir(parents=True)
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    config = {
        "created": _CREATED,
        "architecture": "amd64",
        "os": "linux",
        "config": _CONFIG,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        "history": [{"created": _CREATED, "created_by": "gpu-bringup lab"} for _ in layers],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _blob(layout, f"{_OCI}.config.v1+json", json.dumps(config).encode()),
        "layers": [_blob(layout, f"{_OCI}.layer.v1.tar+gzip", layer.blob.read_bytes()) for layer in layers],
    }
    index = {"schemaVersion": 2, "manifests": [_blob(layout, f"{_OCI}.manifest.v1+json", json.dumps(manifest).encode())]}
    (layout / "index.json").write_text(json.dumps(index))


def _blob(layout: Path, media_type: str, content: bytes) -> dict[str, Any]:
    name = _sha256(content)
    (layout / "blobs" / "sha256" / name.removeprefix("sha256:")).write_bytes(content)
    return {"mediaType": media_type, "digest": name, "size": len(content)}


def _compress(content: bytes, target: Path) -> None:
    # gzip, since Docker 20.10 knows no zstd; a fixed time, so that the same content gives the same digest
    with target.open("wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=1, mtime=0) as compressed:
        compressed.write(content)


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
