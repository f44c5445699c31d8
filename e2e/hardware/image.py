"""An image of the machine's own Python with PyTorch, pushed to the registry: the torch that is known to run on this GPU, and no download.

Two layers: the machine's system folders, and the Python environment with torch and what it requires. Layers are not compressed: they
travel no further than this machine.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.lab.command import run, say
from e2e.lab.errors import LabError

from .host import ADDRESS
from .paths import REGISTRY_PORT, STATE
from .services import REGISTRY

NAME = "gpu-bringup-hardware/pytorch"
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib64", "etc")
_LEFT_OUT = ("usr/local", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/lib/nvidia", "usr/src", "etc/ssh")
_OCI = "application/vnd.oci.image"

# Run by the machine's own python3: its folders, torch's version, and the files of torch and of all that it requires.
_ASK = """
import importlib.metadata as metadata, json, re, sys
import torch
def wanted(requirement, extras):
    marker = requirement.partition(";")[2]
    return "extra ==" not in marker or any(re.search("extra == .%s." % re.escape(each), marker) for each in extras)


found, asked = {}, ["torch", "numpy"]
while asked:
    name, extras = re.match(r"([A-Za-z0-9._-]+)\\s*(?:\\[(.*?)\\])?", asked.pop()).groups()
    key = (name.lower().replace("_", "-"), extras)
    if key in found:
        continue
    try:
        distribution = metadata.distribution(key[0])
    except metadata.PackageNotFoundError:
        continue
    found[key] = [str(distribution.locate_file(each)) for each in distribution.files or []]
    named = [each.strip() for each in (extras or "").split(",")]
    asked += [each for each in distribution.requires or [] if wanted(each, named)]
print(json.dumps({"prefix": sys.prefix, "base": sys.base_prefix, "executable": sys.executable, "torch": torch.__version__,
                  "cuda": torch.version.cuda, "files": [each for files in found.values() for each in files]}))
"""


@dataclass(frozen=True)
class MachinePython:
    prefix: str
    base: str
    executable: str
    torch: str
    cuda: str
    files: tuple[str, ...]


def ask_python() -> MachinePython:
    """The python3 of this machine that has torch. LabError when there is none."""
    python = shutil.which("python3") or "python3"
    try:
        told = run([python, "-c", _ASK], timeout_s=120)
    except LabError as problem:
        raise LabError(f"{python} has no PyTorch to prove the GPU with: {problem}") from None
    answer = json.loads(told)
    return MachinePython(**{**answer, "files": tuple(answer["files"])})


def push_image(python: MachinePython) -> str:
    """Makes the image and pushes it; its reference by digest. Takes about a minute and twice the size of the files on disk."""
    folder = STATE / "image"
    folder.mkdir(parents=True)
    system, environment = folder / "system.tar", folder / "python.tar"
    say(f"packing the machine's system folders and torch {python.torch}")
    _tar(system, [each for each in _SYSTEM if Path("/", each).exists()])
    _tar(environment, sorted(set(_environment(python))))
    layers = [_upload_file(path) for path in (system, environment)]
    config = {
        "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest for digest, _ in layers]},
        "config": {
            "Env": [
                f"PATH={python.prefix}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                f"PYTORCH_VERSION={python.torch}", f"CUDA_VERSION={python.cuda}",
            ],
            "Cmd": ["bash"],
        },
    }  # fmt: skip
    text = json.dumps(config).encode()
    manifest = {
        "schemaVersion": 2, "mediaType": f"{_OCI}.manifest.v1+json",
        "config": {"mediaType": f"{_OCI}.config.v1+json", "digest": _upload(text), "size": len(text)},
        "layers": [{"mediaType": f"{_OCI}.layer.v1.tar", "digest": digest, "size": size} for digest, size in layers],
    }  # fmt: skip
    body = json.dumps(manifest).encode()
    _request("PUT", f"/v2/{NAME}/manifests/machine", body, {"Content-Type": f"{_OCI}.manifest.v1+json"})
    shutil.rmtree(folder)
    return f"{REGISTRY}/{NAME}@sha256:{hashlib.sha256(body).hexdigest()}"


def _environment(python: MachinePython) -> Iterator[str]:
    """Paths without the leading slash: torch's files and the interpreter, as far as they lie outside of the system folders."""
    yield f"{python.prefix}/pyvenv.cfg".lstrip("/")
    yield from (str(each).lstrip("/") for each in Path(python.prefix, "bin").glob("python*"))
    if not python.base.startswith("/usr") or python.base.startswith("/usr/local"):
        yield python.base.lstrip("/")
    yield from (os.path.normpath(each).lstrip("/") for each in python.files if Path(each).is_file())


def _tar(target: Path, paths: list[str]) -> None:
    listed = target.with_suffix(".list")
    listed.write_text("".join(f"{path}\0" for path in paths))
    command = ["tar", "--create", "--numeric-owner", "--one-file-system", "-C", "/", "-f", str(target), "--null"]
    command += [f"--exclude={path}" for path in _LEFT_OUT if not any(each.startswith(path) for each in paths)]
    done = subprocess.run([*command, "-T", str(listed)], capture_output=True, text=True, timeout=300)
    if done.returncode > 1:  # 1: a file changed while it was read
        raise LabError(f"tar could not pack {target.name}: {(done.stderr.strip() or 'it said nothing').splitlines()[-1]}")


def _upload_file(path: Path) -> tuple[str, int]:
    """(digest, size) of a file that the registry holds now."""
    with path.open("rb") as file:
        digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        file.seek(0)
        size = path.stat().st_size
        location = _request("POST", f"/v2/{NAME}/blobs/uploads/", b"", {})
        _request(
            "PUT", _with_digest(location, digest), file, {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        )
    return digest, size


def _upload(content: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    location = _request("POST", f"/v2/{NAME}/blobs/uploads/", b"", {})
    _request("PUT", _with_digest(location, digest), content, {"Content-Type": "application/octet-stream"})
    return digest


def _with_digest(location: str, digest: str) -> str:
    path = location.removeprefix(f"http://{REGISTRY}")
    return f"{path}{'&' if '?' in path else '?'}digest={digest}"


def _request(method: str, path: str, body: object, headers: dict[str, str]) -> str:
    """The Location that the registry answers with. LabError when it refuses."""
    connection = http.client.HTTPConnection(ADDRESS, REGISTRY_PORT, timeout=300)
    try:
        connection.request(method, path, body, headers)  # type: ignore[arg-type]
        answer = connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise LabError(f"the registry refused {method} {path}: {answer.status} {said[:200]!r}")
        return answer.getheader("Location", "")
    finally:
        connection.close()
