"""What is known of images before they are pulled: asked once a run, on the first host that needs it, and kept in the lock file."""

from __future__ import annotations

import base64
import json
import os
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import quote

from gevent.lock import RLock
from pyinfra import logger
from pyinfra.api import Host

from bringup.errors import HostError
from bringup.images_lock import Inside, Locked, Platform, pin
from bringup.pull_errors import Fault, fault
from bringup.references import parts
from bringup.target import Pulling, Target
from operations import shell
from operations.image_scripts import ENGINE
from operations.images_lock import locked, remember
from operations.registry_client import Registry, RegistryError, is_insecure, platforms

ASK_LIMIT_S = 90  # Docker asks its mirrors one after the other
TRIES, BETWEEN_S = 3, 4

# By reference, of this run. Locks are per reference: hosts wait for the one that asks, and do not ask themselves.
_known: dict[str, Locked] = {}
_refused: dict[str, Fault] = {}  # by reference: what a registry said once for all hosts
_unsteady: set[str] = set()  # references whose registry did not answer a host: the others ask once, and do not wait
SAID_TO_ALL = ("rate", "login", "permission", "unknown", "format")
_asking: defaultdict[str, RLock] = defaultdict(RLock)


@dataclass(frozen=True)
class Answer:
    """Of Docker's own interface: the HTTP status, 0 where there was none, and the text after the headers."""

    status: int
    text: str

    @property
    def problem(self) -> str:
        """What went wrong, in Docker's words."""
        try:
            return str(json.loads(self.text)["message"])
        except (ValueError, LookupError, TypeError):
            return self.text.strip()[-400:]


def engine(host: Host, method: str, path: str, auth: str = "", body: str = "") -> Answer:
    """One request to the host's Docker. The login and the body travel on standard input."""
    success, said = shell.run(host, ENGINE, method, path, str(ASK_LIMIT_S), timeout_s=ASK_LIMIT_S + 30, stdin=(auth, body))
    head, _, text = said.replace("\r", "").partition("\n\n")
    words = head.split()
    if success and len(words) > 1 and words[0].startswith("HTTP/") and words[1].isdigit():
        return Answer(int(words[1]), text)
    return Answer(0, said)


def password(pulling: Pulling, registry: str) -> tuple[str, str] | None:
    """User and password for a registry, from the environment of this run; None where no login is set. Raises HostError."""
    login = pulling.logins.get(registry)
    if login is None:
        return None
    found = os.environ.get(login.password_env)
    if not found:
        raise HostError(
            f"the password for {registry} is not in the environment: set {login.password_env}, as gpu_registry_login names it"
        )
    return login.username, found


def login_body(pulling: Pulling, registry: str) -> str:
    """A login as Docker's interface takes it, with the password in it."""
    user, word = password(pulling, registry) or ("", "")
    address = "https://index.docker.io/v1/" if registry == "docker.io" else registry
    return json.dumps({"username": user, "password": word, "serveraddress": address})


def authorization(pulling: Pulling, registry: str) -> str:
    """X-Registry-Auth; empty without a login."""
    return base64.urlsafe_b64encode(login_body(pulling, registry).encode()).decode() if registry in pulling.logins else ""


def with_digests(target: Target) -> Target:
    """The target with what this run has resolved tags to; as it is where nothing was asked."""
    digests = {name: each.digest for name, each in _known.items() if "@" not in name}
    images = tuple(pin(each, digests) for each in target.images)
    sizes = {pin(each, digests): found for each, found in target.pulling.sizes.items()}
    return replace(target, images=images, pulling=replace(target.pulling, sizes={**target.pulling.sizes, **sizes}))


def known(host: Host, reference: str, pulling: Pulling, arch: str) -> Locked:
    """The index digest of a reference and what it holds for an architecture. Raises HostError with a sentence for people.

    Asks the registry only for what neither this run nor the lock file knows; the first that asks tells the others.
    """
    image = parts(reference)
    name = reference if image.digest else str(image.tagged)
    with _asking[name]:
        candidates = [_known.get(name), _known.get(str(image.tagged))]
        if image.digest or not pulling.refresh:
            candidates.append(locked(pulling.lock).get(str(image.tagged)))
        found = next((each for each in candidates if each and image.digest in (None, each.digest)), None)
        if found is None:
            found = _ask(host, reference, pulling, arch)
        if found.platforms.get(arch, Platform()) == Platform() and (not found.platforms or arch in found.platforms):
            found = _with_sizes(host, reference, found, pulling, arch)
        if image.digest is None:
            remember(host, name, found, pulling.lock)
        _known[name] = found
        return found


def learned(host: Host, reference: str, inside: Inside, pulling: Pulling, arch: str) -> None:
    """What was found inside of an image that is there now, for the other hosts and for later runs."""
    tagged = str(parts(reference).tagged)
    for name in {reference, tagged} & _known.keys():
        found, digest = _known[name], parts(reference).digest
        if digest in (None, found.digest):
            platform = replace(found.platforms.get(arch, Platform()), inside=inside)
            _known[name] = replace(found, platforms={**found.platforms, arch: platform})
            if name == tagged:
                remember(host, name, _known[name], pulling.lock)


def digests_of(name: str, pulling: Pulling) -> set[str]:
    """What an archive may be held against: the digest that the settings give with the name, else what the lock file has of its tag."""
    image = parts(name)
    if image.digest:
        return {image.digest}
    found = locked(pulling.lock).get(str(image.tagged))
    return {found.digest, *(each.image_id for each in found.platforms.values() if each.image_id)} if found else set()


def _ask(host: Host, reference: str, pulling: Pulling, arch: str) -> Locked:
    """By Docker on the host, which takes the way that the pull will take: mirrors, proxy, certificates, login."""
    if reference in _refused:
        raise HostError(_refused[reference].sentence)
    image = parts(reference)
    auth = authorization(pulling, image.registry)
    path = (
        f"/distribution/{quote(f'{image.name}@{image.digest}' if image.digest else f'{image.name}:{image.tag}', safe='/:@')}/json"
    )
    for attempt in range(1, TRIES + 1):
        answer = engine(host, "GET", path, auth)
        if answer.status == 200:
            break
        found = explained(answer.problem, reference, pulling, arch)
        if found.kind in SAID_TO_ALL and not found.passing:
            _refused[reference] = found
        if not found.passing or attempt == TRIES or reference in _unsteady:
            _unsteady.add(reference)
            raise HostError(found.sentence)
        time.sleep(BETWEEN_S * attempt)
    try:
        value = json.loads(answer.text)
        has = {_arch(each["architecture"]): Platform() for each in value.get("Platforms") or [] if each.get("os") == "linux"}
        return Locked(str(value["Descriptor"]["digest"]), datetime.now(tz=UTC).date().isoformat(), has)
    except (ValueError, LookupError, TypeError):
        raise HostError(fault("unexpected end of JSON input", reference).sentence) from None


def _arch(word: str) -> str:
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(word, word)


def _with_sizes(host: Host, reference: str, found: Locked, pulling: Pulling, arch: str) -> Locked:
    """Sizes and requirements, which Docker does not tell: asked from here, mirrors first. Where all fail the pull goes on without."""
    image = parts(reference)
    mirrors = pulling.mirrors if image.registry == "docker.io" else ()
    registries = [Registry(each, is_insecure(each, pulling.insecure)) for each in mirrors]
    registries.append(Registry(image.registry, is_insecure(image.registry, pulling.insecure), password(pulling, image.registry)))
    said = ""
    for registry in registries:
        try:
            return replace(found, platforms={**found.platforms, **platforms(registry, image, found.digest, arch)})
        except RegistryError as error:
            said = f"{registry.name} does not tell it to this machine ({error})"
    host.log(f"the size of {reference} is not known: {said}", logger.warning)
    return found


def explained(message: str, reference: str, pulling: Pulling, arch: str) -> Fault:
    """The fault; of a rate limit with the time that the registry asks to wait, which Docker does not pass on."""
    image = parts(reference)
    logged_in = image.registry in pulling.logins
    found = fault(message, reference, logged_in=logged_in, arch=arch)
    if found.kind != "rate":
        return found
    try:
        registry = Registry(image.registry, is_insecure(image.registry, pulling.insecure))
        registry.get(f"{image.repository}/manifests/{image.digest or image.tag}")
    except RegistryError as error:
        return fault(message, reference, logged_in=logged_in, arch=arch, wait_s=error.wait_s)
    return found
