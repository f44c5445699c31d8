"""Asks a registry, from the control machine, what an image holds: sizes, architectures, what it requires. Manifests only, never layers."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import math
import re
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any

from bringup.images_lock import Platform
from bringup.inside import stated
from bringup.references import Parts

TIMEOUT_S = 10
MAX_BYTES = 4 << 20  # of a manifest or of an image's settings; the specification's own limit
MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
BEARING = ("NVIDIA_REQUIRE_", "LD_LIBRARY_PATH=", "CUDA_VERSION=")  # variables of an image that bear on the driver
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}  # Go's names, and the kernel's


class RegistryError(Exception):
    """What the registry said, in one line. `wait_s`: how long it asks to wait."""

    def __init__(self, message: str, wait_s: int | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


@dataclass
class Registry:
    """One registry, with or without TLS as Docker on the hosts may use it; `name` may be the address of a mirror, https://… or http://…"""

    name: str
    insecure: bool = False
    login: tuple[str, str] | None = None
    _token: str = ""

    @property
    def bases(self) -> list[str]:
        """Docker's own registry has another host name. Without TLS only where that is allowed."""
        if "://" in self.name:
            return [self.name.rstrip("/")]
        host = "registry-1.docker.io" if self.name == "docker.io" else self.name
        return [f"https://{host}", f"http://{host}"] if self.insecure else [f"https://{host}"]

    def get(self, path: str, accept: str = "*/*") -> Any:
        """The JSON at a path. Raises RegistryError."""
        problem: Exception = RegistryError("it has no address")
        for base in self.bases:
            try:
                return self._get(f"{base}/v2/{path}", accept)
            except urllib.error.HTTPError as error:
                raise RegistryError(_words(error), _wait(error.headers)) from None
            except (OSError, http.client.HTTPException, ValueError) as error:  # no TLS there, or nobody at all
                problem = error
        reason = getattr(problem, "reason", None)
        raise RegistryError(str(reason or problem) or type(problem).__name__)

    def _get(self, url: str, accept: str) -> Any:
        for attempt in (1, 2):
            request = urllib.request.Request(url, headers={"Accept": accept, **self._authorization()})  # noqa: S310 - https, or http where it is allowed
            try:
                return json.loads(self._open(request))
            except urllib.error.HTTPError as error:
                if error.code != 401 or attempt == 2 or not self._log_in(error.headers.get("WWW-Authenticate", "")):
                    raise
        return None

    def _open(self, request: urllib.request.Request) -> bytes:
        context = ssl.create_default_context()
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        opener = urllib.request.build_opener(_SameHost, urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"{request.full_url} is larger than {MAX_BYTES >> 20} MiB")
        return content

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": self._token} if self._token else {}

    def _log_in(self, challenge: str) -> bool:
        """With what a 401 asks for: a password, or a token that its realm gives out."""
        kind, _, rest = challenge.partition(" ")
        basic = ""
        if self.login:
            basic = "Basic " + base64.b64encode(":".join(self.login).encode()).decode()
        if kind.casefold() == "basic":
            self._token = basic
            return bool(basic)
        fields: dict[str, str] = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = fields.pop("realm", "")
        if not re.match(r"https://" if not self.insecure else r"https?://", realm):
            return False
        headers = {"Authorization": basic} if basic else {}
        request = urllib.request.Request(f"{realm}?{urllib.parse.urlencode(fields)}", headers=headers)  # noqa: S310 - checked above
        answer = json.loads(self._open(request))
        self._token = f"Bearer {answer.get('token') or answer.get('access_token') or ''}"
        return True


class _SameHost(urllib.request.HTTPRedirectHandler):
    """A password or token is for the registry, not for the storage that it sends us to."""

    def redirect_request(self, *arguments: Any) -> urllib.request.Request | None:  # type: ignore[explicit-override]
        request = super().redirect_request(*arguments)
        if (
            request is not None
            and urllib.parse.urlsplit(request.full_url).netloc != urllib.parse.urlsplit(arguments[0].full_url).netloc
        ):
            request.remove_header("Authorization")
        return request


def _words(error: urllib.error.HTTPError) -> str:
    """`HTTP 429 toomanyrequests: slow down`."""
    try:
        first = json.loads(error.read(64 << 10))["errors"][0]
        return f"HTTP {error.code} {first.get('code', '')}: {first.get('message', '')}"
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        return f"HTTP {error.code} {error.reason}"


def _wait(headers: Message) -> int | None:
    """Of Retry-After, which is seconds or a date, in seconds from now."""
    found = headers.get("Retry-After", "").strip()
    if found.isdigit():
        return int(found)
    try:
        return max(0, math.ceil(parsedate_to_datetime(found).timestamp() - time.time()))
    except (ValueError, OverflowError):
        return None


def is_insecure(registry: str, allowed: Iterable[str]) -> bool:
    """As Docker judges it: named, in a network that is named, or on the machine itself."""
    registry = registry.rpartition("://")[2].rstrip("/")
    host = registry.rpartition(":")[0] if ":" in registry else registry
    networks = ["127.0.0.0/8", *(each for each in allowed if "/" in each)]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return registry in allowed or host in allowed or host == "localhost"
    return registry in allowed or host in allowed or any(address in ipaddress.ip_network(each, strict=False) for each in networks)


def platforms(registry: Registry, image: Parts, digest: str, arch: str) -> dict[str, Platform]:
    """What the image has by architecture; sizes and requirements of the one that is asked for. Raises RegistryError."""
    manifest = registry.get(f"{image.repository}/manifests/{digest}", MANIFESTS)
    try:
        found: dict[str, Platform] = {}
        for each in manifest.get("manifests", []):
            platform = each.get("platform") or {}
            if platform.get("os") == "linux":
                found[ARCHITECTURES.get(platform["architecture"], platform["architecture"])] = Platform()
                if ARCHITECTURES.get(platform["architecture"]) == arch:
                    child = registry.get(f"{image.repository}/manifests/{each['digest']}", MANIFESTS)
        if "manifests" not in manifest:
            child = manifest
        elif arch not in found:
            return found
        settings = registry.get(f"{image.repository}/blobs/{child['config']['digest']}")
        config = settings.get("config") or {}
        environment = config.get("Env") or []
        bearing = tuple(each for each in environment if each.startswith(BEARING))
        has = str(ARCHITECTURES.get(settings["architecture"], settings["architecture"]))
        return {
            **found,
            has: Platform(
                sum(int(layer["size"]) for layer in child["layers"]),
                str(child["config"]["digest"]),
                bearing,
                stated(environment, config.get("Labels") or {}),
            ),
        }
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RegistryError(f"its manifest cannot be read ({type(error).__name__}: {error})") from None
