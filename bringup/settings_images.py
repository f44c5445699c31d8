"""Settings of images that are mappings: own images with their facts, archives, logins of registries."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from bringup.catalog.images import Image
from bringup.errors import nearest, wrong
from bringup.references import HUB, is_reference

OWN = ("reference", "cuda", "torch", "sm", "ptx", "architectures", "digest", "flavour", "compat", "python", "compressed_bytes",
       "unpack_ratio", "note")  # fmt: skip
ARCHITECTURES = ("x86_64", "aarch64")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")

Prewarm = Literal["report", "image", "off"]


@dataclass(frozen=True)
class Login:
    """`password_env` names the environment variable of the control machine that holds the password."""

    username: str
    password_env: str


def logins(key: str, value: object) -> Mapping[str, Login]:
    """`{"nvcr.io": {"username": "$oauthtoken", "password_env": "NGC_API_KEY"}}`."""
    if not isinstance(value, Mapping):
        raise wrong(key, value, "it must be a mapping from registries to username and password_env")
    found = {_registry(key, registry): given for registry, given in value.items()}
    return {registry: _login(f"{key}[{registry!r}]", registry, given) for registry, given in found.items()}


def _registry(key: str, value: object) -> str:
    """As references name it: Docker's own registry has several names."""
    if not isinstance(value, str) or "/" in value or not is_reference(f"{value}/x"):
        raise wrong(
            key, value, "a registry is named as in references, such as nvcr.io or registry.example:5000, without https://"
        )
    return "docker.io" if f"{value}/" in HUB else value


def _login(key: str, registry: str, given: object) -> Login:
    if not isinstance(given, Mapping):
        raise wrong(key, "***", "it must be a mapping with username and password_env")
    for each in given:
        if each not in ("username", "password_env"):  # a password beside them is not to be shown
            raise wrong(
                key, each, "a login has username and password_env, the name of the environment variable with the password"
            )
    user, variable = given.get("username"), given.get("password_env")
    if not isinstance(user, str) or not user:
        hint = ": for nvcr.io it is literally $oauthtoken, in single quotes for a shell" if registry == "nvcr.io" else ""
        raise wrong(f"{key}['username']", user, f"it must be a text{hint}")
    if registry == "nvcr.io" and user != "$oauthtoken":
        raise wrong(f"{key}['username']", user, "the user of nvcr.io is literally $oauthtoken, the password an NGC API key")
    if not isinstance(variable, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise wrong(f"{key}['password_env']", "***", "it must be the name of an environment variable, never the password itself")
    return Login(user, variable)


def archives(key: str, value: object) -> Mapping[str, str]:
    """`{"registry.example/train:7": "images/train-7.tar"}`: by the name or reference that gpu_images has."""
    if not isinstance(value, Mapping) or not all(isinstance(each, str) and each for pair in value.items() for each in pair):
        raise wrong(key, value, 'it must be a mapping from images to files, such as {"registry.example/train:7": "train.tar"}')
    for each in value:
        if not is_reference(each):
            raise wrong(key, each, "it is no name of an image: as in gpu_images")
    return dict(value)


def own_images(key: str, value: object) -> Mapping[str, Image]:
    """`{"train": {"reference": "registry.example/train:7", "cuda": "12.8", "torch": "2.9.1", "sm": [90], "ptx": [90]}}`."""
    if not isinstance(value, Mapping):
        raise wrong(key, value, "it must be a mapping from a name to the facts of an image")
    return {str(name): _own_image(f"{key}[{name!r}]", str(name), facts) for name, facts in value.items()}


def _own_image(key: str, name: str, facts: object) -> Image:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) or name == "auto":
        raise wrong(key, name, "the name of an own image has small letters, digits, dots and hyphens, and is not auto")
    if not isinstance(facts, Mapping):
        raise wrong(key, facts, "it must be a mapping with reference and cuda")
    for each in facts:
        if each not in OWN:
            raise wrong(key, each, f"the facts of an image are {', '.join(OWN)}{nearest(str(each), OWN)}")
    for each in ("reference", "cuda"):
        if not isinstance(facts.get(each), str):
            raise wrong(f"{key}[{each!r}]", facts.get(each), "it is needed, as text in quotes")
    values: dict[str, Any] = dict(facts)
    if not is_reference(values["reference"]) or "@" in values["reference"]:
        raise wrong(f"{key}['reference']", values["reference"], "it must be host/path:tag in lower case; a digest goes to digest")
    if not re.fullmatch(r"\d{2}\.\d{1,2}", values["cuda"]):
        raise wrong(f"{key}['cuda']", values["cuda"], "it must be a version such as 12.8")
    for each in ("sm", "ptx"):
        if values.get(each) is not None:
            values[each] = _codes(f"{key}[{each!r}]", values[each])
    digest = values.get("digest")
    if digest is not None and not (isinstance(digest, str) and DIGEST.fullmatch(digest)):
        raise wrong(f"{key}['digest']", digest, "it must be sha256: and 64 hexadecimal digits")
    values["architectures"] = _choices(f"{key}['architectures']", values.get("architectures", ["x86_64"]), ARCHITECTURES)
    values["flavour"] = _choices(f"{key}['flavour']", [values.get("flavour", "runtime")], ("base", "runtime", "devel"))[0]
    if values.get("compat") is not None:
        values["compat"] = _texts(f"{key}['compat']", values["compat"])
    for each, kinds, what in (("compressed_bytes", int, "a whole number of bytes"), ("unpack_ratio", int | float, "a number")):
        found = values.get(each)
        if found is not None and (isinstance(found, bool) or not isinstance(found, kinds) or not 0 < found < math.inf):
            raise wrong(f"{key}[{each!r}]", found, f"it must be {what}, more than 0")
    for each in ("torch", "python", "note"):
        if values.get(each) is not None and not isinstance(values[each], str):
            raise wrong(f"{key}[{each!r}]", values[each], "it must be text: put quotes around it")
    defaults: dict[str, Any] = {"name": name, "family": "own", "digest": None, "torch": None, "sm": None, "sources": ()}
    known = {each.name for each in fields(Image)}
    return Image(**{each: given for each, given in {**defaults, **values}.items() if each in known})


def mirrors(key: str, value: object) -> tuple[str, ...]:
    """`["https://mirror.example:5000"]`, by Docker's own rules, which would not start by another."""
    found = _texts(key, value)
    for each in found:
        if "@" in each:
            raise wrong(key, "***", "Docker takes no user and password in the address of a mirror")
        if not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", each):
            raise wrong(key, each, "a mirror is https://host:port (or http://), without query")
    return found


def insecure_registries(key: str, value: object) -> tuple[str, ...]:
    """`["registry.example:5000", "10.0.0.0/8"]`."""
    found = _texts(key, value)
    for each in found:
        try:
            fine = bool(ipaddress.ip_network(each, strict=False)) if "/" in each else is_reference(f"{each}/x")
        except ValueError:
            fine = False
        if not fine:
            raise wrong(key, each, "it must be host:port or a network such as 10.0.0.0/8, without http://")
    return found


def _codes(key: str, value: object) -> tuple[int, ...]:
    """90, "9.0", "sm_90" and "compute_90" are the same; sm_90a runs on 9.0 alone and counts as no general code."""
    if not isinstance(value, list | tuple):
        raise wrong(key, value, "it must be a list such as [80, 90]")
    found = []
    for each in value:
        text = re.sub(r"^(sm|compute)_", "", str(each)).replace(".", "")
        if isinstance(each, bool) or not re.fullmatch(r"\d{2,3}", text):
            raise wrong(key, each, "it must be a number such as 90 (leave out sm_90a and the like: they are not for other GPUs)")
        found.append(int(text))
    return tuple(found)


def _texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise wrong(key, value, 'it must be a list of texts, such as ["a", "b"]')
    return tuple(value)


def _choices(key: str, value: object, choices: tuple[str, ...]) -> tuple[str, ...]:
    found = _texts(key, value)
    for each in found:
        if each not in choices:
            raise wrong(key, each, f"it must be one of {', '.join(choices)}{nearest(each, choices)}")
    return found
