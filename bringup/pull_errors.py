"""What Docker and registries say when a pull fails: which fault it is, whether it passes by itself, and what to do. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from bringup import catalog
from bringup.references import parts

Kind = Literal[
    "rate", "space", "clock", "certificate", "plain-http", "proxy", "platform", "login", "unknown", "permission", "format", "digest",
    "daemon", "network",
]  # fmt: skip
HUB_WINDOW = "Docker Hub counts over 6 hours"
SHORT_WAIT_S = 5  # registries that count by the second ask for less: another try is not in vain
UNITS_S = {"µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Fault:
    """`passing`: worth another try. `sentence`: for people, with the next step."""

    kind: Kind
    passing: bool
    sentence: str


# The first that fits counts: what is certain comes before words that many errors share.
PATTERNS: dict[Kind, tuple[str, ...]] = {
    "rate": (r"toomanyrequests", r"too many requests", r"rate limit", r"(HTTP|status:?) 429"),
    "space": (r"no space left on device", r"disk quota exceeded"),
    "clock": (r"certificate has expired or is not yet valid", r"is not yet valid"),
    "certificate": (r"x509:", r"unknown authority", r"failed to verify certificate", r"tls: "),
    "plain-http": (r"server gave HTTP response to HTTPS client",),
    "proxy": (r"proxyconnect", r"Proxy Authentication Required", r"(HTTP|status:?) 407"),
    "platform": (r"no matching manifest", r"no match for platform", r"does not match the (detected|specified)",
                 r"operating system .* cannot be used"),
    "login": (r"unauthorized", r"authentication required", r"no basic auth credentials", r"incorrect username or password",
              r"(HTTP|status:?) 401"),
    "unknown": (r"manifest unknown", r"manifest for .* not found", r"repository .* not found", r"name unknown", r"404 Not Found",
                r"(HTTP|status:?) 404", r"no such manifest", r": not found$"),
    "permission": (r"denied", r"403 Forbidden", r"(HTTP|status:?) 403"),
    "format": (r"unsupported (manifest )?media ?type", r"schema ?1", r"mediatype", r"invalid character", r"cannot unmarshal",
               r"manifest invalid", r"unexpected end of JSON"),
    "digest": (r"does not match (the )?digest", r"verification failed", r"digest mismatch", r"unexpected digest", r"content digest"),
    "daemon": (r"cannot connect to the docker daemon", r"is the docker daemon running", r"read-only file system", r"input/output error"),
}  # fmt: skip


def fault(message: str, reference: str, *, logged_in: bool = False, arch: str = "", wait_s: int | None = None) -> Fault:
    """+ message: the words of Docker or of a registry
    + logged_in: a login for the registry was given
    + wait_s: seconds that the registry itself asks to wait, where it does
    """
    said = one_line(message)
    kind: Kind = next((kind for kind, each in PATTERNS.items() if any(re.search(one, said, re.I) for one in each)), "network")
    asked_s = _asked_wait(said) if wait_s is None else wait_s
    passing = kind in ("network", "digest") or (kind == "rate" and asked_s is not None and asked_s <= SHORT_WAIT_S)
    return Fault(kind, passing, _sentence(kind, said, reference, logged_in, arch, asked_s))


def _asked_wait(said: str) -> int | None:
    """Whole seconds of `retry-after: 614.286µs, allowed: 44000/minute`, as some registries have it in their words."""
    found = re.search(r"retry[- ]after:? *(\d+(?:\.\d+)?) *([a-zµ]*)", said, re.I)
    unit = UNITS_S.get(found[2] or "s") if found else None
    return math.ceil(float(found[1]) * unit) if found and unit else None


def _curated_instead(registry: str, repository: str, tag: str | None) -> str:
    """`, such as docker.io/nvidia/cuda:13.4.2-base-ubuntu24.04,`: of the catalog's images in the same repository the nearest by name."""
    same = [each for each in catalog.load().images if parts(each.reference)[:2] == (registry, repository)]
    tags = {str(parts(each.reference).tag): each.reference for each in same}
    nearest = get_close_matches(tag or "", tags, n=1, cutoff=0)
    return f", such as {tags[nearest[0]]}," if nearest else ""


def _sentence(kind: Kind, said: str, reference: str, logged_in: bool, arch: str, wait_s: int | None) -> str:
    registry, repository, tag, digest = parts(reference)
    what, end = f"{repository}:{tag}" if tag else f"{repository}@{digest}", said[-160:]
    login = f"set gpu_registry_login[{registry!r}]"
    if registry == "nvcr.io":
        login += " (user $oauthtoken, password an NGC API key)"
    match kind:
        case "rate":
            silent = HUB_WINDOW if registry == "docker.io" else "it does not say how long"
            wait = f"wait {wait_s} s as it asks" if wait_s is not None else f"wait ({silent})"
            hint = "" if logged_in else f", {login}"
            ways = "name a mirror, or load it from a file (gpu_images_archive)"
            return f"{registry} refuses {what} (429 toomanyrequests), this address has pulled too much: {wait}{hint}, {ways}"
        case "login" if logged_in:
            return f"{registry} does not accept the login for {what} (401): correct it; {login}"
        case "login":
            return f"{registry} wants a login for {what} (401): {login}, or correct the name where it is public"
        case "permission" if logged_in:
            return f"{registry} denies this login access to {what} (403): ask its owner for access, or correct the name"
        case "permission":
            return f"{registry} denies a pull of {what} without login (403): {login}, or correct the name"
        case "unknown":
            one = f"name one that is there{_curated_instead(registry, repository, tag)} or auto in gpu_images"
            return f"{registry} has no {what} (manifest unknown; old tags are deleted): {one}"
        case "platform":
            has = f" ({arch})" if arch else ""
            return f"{what} has nothing for this host's architecture{has}: name an image that is built for it in gpu_images"
        case "space":
            way = "make room, or give Docker another data-root in gpu_docker_options"
            return f"the disk of Docker filled up while {what} was pulled ({end}), and Docker removed what it had of it: {way}"
        case "clock":
            return f"the certificate of {registry} is not valid by this host's clock: set the clock (timedatectl set-ntp true)"
        case "certificate":
            return f"this host does not trust {registry} ({end}): put its CA into /etc/docker/certs.d/{registry}/ca.crt"
        case "plain-http":
            return f"{registry} speaks HTTP without TLS: add {registry} to gpu_insecure_registries if that is right"
        case "proxy":
            return f"the proxy in front of {registry} refuses ({end}): correct Docker's proxy settings on this host"
        case "digest":
            return f"what {registry} sent for {what} does not match its digest ({end}): a mirror or proxy in between is broken"
        case "format":
            return f"{registry} answers for {what} with what this Docker cannot read ({end}): use a newer Docker or another image"
        case "daemon":
            return f"Docker on this host cannot pull ({end}): see `journalctl -u docker` on the host"
        case "network":
            way = (
                "is it up, and may Docker reach it from this host (dockerd has proxy settings of its own, a shell's do not count)"
            )
            return f"{registry} cannot be reached for {what} ({end}): {way}"


def one_line(text: str) -> str:
    """Without passwords in addresses."""
    return re.sub(r"//[^/@\s]*@", "//***@", " ".join(text.split())) or "it said nothing"
