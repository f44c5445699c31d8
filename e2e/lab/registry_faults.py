"""What can be wrong with the lab's registry: a proxy before it that fails as it is told to, and images that are made for a fault."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import services
from .network import Network
from .paths import STATE
from .registry import address

DOCKER = "application/vnd.docker.distribution"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
PROXY_PORT = 8084
PROXY = "registry-proxy"
RULES = STATE / "registry-proxy.json"
REQUESTS = STATE / "registry-proxy.log"
SENT = STATE / "registry-proxy.sent"


def proxy_address(network: Network) -> str:
    """HOST:PORT of the registry that fails as it is told to."""
    return f"{network.gateway}:{PROXY_PORT}"


def serve_proxy(network: Network) -> None:
    """Starts registry_proxy.py before the registry; it ends with the lab."""
    REQUESTS.touch()
    program = Path(__file__).with_name("registry_proxy.py")
    services.start(
        network, PROXY, PROXY_PORT,
        [sys.executable, str(program), network.gateway, str(PROXY_PORT), address(network), str(RULES), str(REQUESTS), str(SENT)],
    )  # fmt: skip


def answer(*rules: dict[str, Any]) -> None:
    """From now on the proxy fails by these rules (registry_proxy.py), in the place of those before; without any, by none."""
    scratch = RULES.with_suffix(".new")
    scratch.write_text(json.dumps(rules))
    scratch.rename(RULES)


def requests() -> list[str]:
    """`METHOD PATH` of each request to the proxy so far."""
    return REQUESTS.read_text().splitlines()


def pulls(network: Network, name: str, tag: str) -> dict[str, tuple[float, float]]:
    """By client: from when to when it was sent layers of an image, in seconds of one clock."""
    wanted = {f"/v2/{name}/blobs/{each}" for each in layers(network, name, tag)}
    found: dict[str, tuple[float, float]] = {}
    for line in SENT.read_text().splitlines():
        client, began, ended, path = line.split()
        if path in wanted:
            first, last = found.get(client, (float(began), float(ended)))
            found[client] = (min(first, float(began)), max(last, float(ended)))
    return found


def make_image(network: Network, name: str, tag: str, layers: list[bytes], environment: Sequence[str] = ()) -> str:
    """Pushes an image of such files, one a layer, and returns its digest. What is in the files decides how far they are compressed."""
    blobs = [_layer(f"layer-{number}", content) for number, content in enumerate(layers)]
    config = {
        "architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin", *environment], "Cmd": ["/none"]},
        "rootfs": {"type": "layers", "diff_ids": [sha256(tar) for tar, _ in blobs]},
        "history": [{"created_by": "gpu-bringup lab"} for _ in blobs],
    }  # fmt: skip
    manifest = {
        "schemaVersion": 2, "mediaType": f"{DOCKER}.manifest.v2+json",
        "config": _push(network, name, f"{DOCKER.replace('distribution', 'container')}.image.v1+json", json.dumps(config).encode()),
        "layers": [_push(network, name, f"{DOCKER.replace('distribution', 'image')}.rootfs.diff.tar.gzip", blob) for _, blob in blobs],
    }  # fmt: skip
    return _put(network, name, tag, manifest)


def make_variant(network: Network, name: str, tag: str, new_tag: str, environment: Sequence[str]) -> str:
    """Pushes an image again under another tag, with further variables, and returns its digest."""
    manifest = json.loads(urllib.request.urlopen(_request(network, "GET", f"{name}/manifests/{tag}"), timeout=20).read())
    blob = f"{name}/blobs/{manifest['config']['digest']}"
    config = json.loads(urllib.request.urlopen(_request(network, "GET", blob), timeout=20).read())
    config["config"]["Env"] = [*config["config"]["Env"], *environment]
    manifest["config"] = _push(network, name, manifest["config"]["mediaType"], json.dumps(config).encode())
    return _put(network, name, new_tag, {"mediaType": OCI_MANIFEST, **manifest})


def make_index(network: Network, name: str, tag: str, digest: str, architecture: str) -> str:
    """An index that has one manifest, for one architecture."""
    child = urllib.request.urlopen(_request(network, "GET", f"{name}/manifests/{digest}"), timeout=20).read()
    entry = {
        "mediaType": f"{DOCKER}.manifest.v2+json", "digest": digest, "size": len(child),
        "platform": {"os": "linux", "architecture": architecture},
    }  # fmt: skip
    return _put(network, name, tag, {"schemaVersion": 2, "mediaType": f"{DOCKER}.manifest.list.v2+json", "manifests": [entry]})


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _layer(name: str, content: bytes) -> tuple[bytes, bytes]:
    """(tar, the same compressed)."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as file:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        file.addfile(entry, io.BytesIO(content))
    return tar.getvalue(), gzip.compress(tar.getvalue(), 1, mtime=0)


def _push(network: Network, name: str, media_type: str, content: bytes) -> dict[str, Any]:
    begun = urllib.request.urlopen(_request(network, "POST", f"{name}/blobs/uploads/", b""), timeout=20)
    place = begun.headers["Location"]
    place += f"{'&' if '?' in place else '?'}digest={sha256(content)}"
    request = urllib.request.Request(place, content, {"Content-Type": "application/octet-stream"}, method="PUT")
    urllib.request.urlopen(request, timeout=60)
    return {"mediaType": media_type, "digest": sha256(content), "size": len(content)}


def _put(network: Network, name: str, tag: str, manifest: dict[str, Any]) -> str:
    content = json.dumps(manifest).encode()
    urllib.request.urlopen(_request(network, "PUT", f"{name}/manifests/{tag}", content, manifest["mediaType"]), timeout=20)
    return sha256(content)


def _request(
    network: Network, method: str, path: str, content: bytes | None = None, media_type: str = "*/*"
) -> urllib.request.Request:
    headers = {"Accept": f"{DOCKER}.manifest.v2+json, {OCI_MANIFEST}", "Content-Type": media_type}
    return urllib.request.Request(f"http://{address(network)}/v2/{path}", content, headers, method=method)


def layers(network: Network, name: str, tag: str) -> list[str]:
    """The digests of an image's layers."""
    manifest = json.loads(urllib.request.urlopen(_request(network, "GET", f"{name}/manifests/{tag}"), timeout=20).read())
    return [each["digest"] for each in manifest["layers"]]
