"""What Docker and registries say, as public reports have it, and what is made of it: the fault, whether it passes, the next step."""

from __future__ import annotations

import pytest

from bringup.pull_errors import fault

CUDA = "nvidia/cuda:11.0-base-ubuntu20.04"
NGC = "nvcr.io/nvidia/pytorch:25.08-py3"
# (message, reference, arguments, kind, passes, words of the sentence)
SAID = [
    # a root disk that is too small, noticed half-way
    ("failed to register layer: write /opt/conda/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: no space left on device",
     "pytorch/pytorch:2", {}, "space", False, "the disk of Docker filled up while pytorch/pytorch:2 was pulled"),
    ("write /var/lib/docker/tmp/GetImageBlob123: disk quota exceeded", "a/b:1", {}, "space", False, "another data-root"),
    # the limit of Docker's own registry for an address that many share
    ("toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit",
     CUDA, {}, "rate", False, "wait (Docker Hub counts over 6 hours), set gpu_registry_login['docker.io'], name a mirror, or load it"),
    ("Error response from daemon: toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating",
     "team/train:1", {"logged_in": True}, "rate", False, "wait (Docker Hub counts over 6 hours), name a mirror, or load it from a file"),
    ("toomanyrequests: retry-after: 614.286µs, allowed: 44000/minute", "ghcr.io/a/b:1", {}, "rate", True, "wait 1 s as it asks"),
    ("toomanyrequests: Rate exceeded, retry-after: 2m", "r.example/a:1", {}, "rate", False, "wait 120 s as it asks"),
    ("toomanyrequests: retry-after: 614.286µs", "ghcr.io/a/b:1", {"wait_s": 60}, "rate", False, "wait 60 s as it asks"),
    ("toomanyrequests: slow down", "registry.example/a:1", {"wait_s": 30}, "rate", False, "wait 30 s as it asks"),
    ("toomanyrequests: slow down", "registry.example/a:1", {}, "rate", False, "wait (it does not say how long)"),
    ("error parsing HTTP 429 response body: invalid character 'T'", "ghcr.io/a/b:1", {"logged_in": True}, "rate", False, "429"),
    # tags that are gone
    (f"manifest for {CUDA} not found: manifest unknown: manifest unknown", CUDA, {}, "unknown", False,
     "docker.io has no nvidia/cuda:11.0-base-ubuntu20.04 (manifest unknown; old tags are deleted): name one that is "
     "there, such as docker.io/nvidia/cuda:13.4.2-base-ubuntu24.04, or auto in gpu_images"),
    ("manifest unknown: manifest unknown", "pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtim", {}, "unknown", False,
     "such as docker.io/pytorch/pytorch:2.14.1-cuda13.2-cudnn9-runtime, or auto"),
    ("name unknown: repository name not known to registry", "r.example/train:7", {}, "unknown", False, "r.example has no train:7"),
    # logins: none, a wrong one, one without permission
    ("unauthorized: authentication required", NGC, {}, "login", False,
     "wants a login for nvidia/pytorch:25.08-py3 (401): set gpu_registry_login['nvcr.io'] (user $oauthtoken, password an NGC API key)"),
    ('Head "https://nvcr.io/v2/nvidia/pytorch/manifests/25.08-py3": unauthorized', NGC, {"logged_in": True}, "login", False,
     "does not accept the login"),
    ("failed to fetch anonymous token: unexpected status: 401 Unauthorized", NGC, {}, "login", False, "wants a login"),
    ('denied: {"errors": [{"code": "DENIED", "message": "Access Denied"}]}', NGC, {}, "permission", False, "without login (403)"),
    ("pull access denied for team/private, repository does not exist or may require 'docker login'", "team/private:1", {},
     "permission", False, "or correct the name"),
    ("denied: requested access to the resource is denied", "ghcr.io/team/x:1", {"logged_in": True}, "permission", False,
     "denies this login access"),
    ("Get \"https://r.example/v2/\": unauthorized: incorrect username or password", "r.example/x:1", {"logged_in": True}, "login", False,
     "does not accept the login"),
    # another architecture
    ("no matching manifest for linux/arm64/v8 in the manifest list entries", "a/b:1", {"arch": "aarch64"}, "platform", False,
     "b:1 has nothing for this host's architecture (aarch64)"),
    ("WARNING: The requested image's platform (linux/amd64) does not match the detected host platform (linux/arm64/v8)", "a/b:1", {},
     "platform", False, "architecture"),
    # proxies, certificates, clocks
    ('Get "https://registry-1.docker.io/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while '
     "awaiting headers)", CUDA, {}, "network", True, "dockerd has proxy settings of its own, a shell's do not count"),
    ('Get "https://registry-1.docker.io/v2/": proxyconnect tcp: dial tcp: lookup proxy.corp on 127.0.0.53:53: no such host', CUDA, {},
     "proxy", False, "the proxy in front of docker.io"),
    ('Get "https://r.example/v2/": Proxy Authentication Required //bob:secret@proxy', "r.example/x:1", {}, "proxy", False, "***@proxy"),
    ('Get "https://r.example/v2/": x509: certificate has expired or is not yet valid: current time 2019-01-01T00:00:00Z is before '
     "2026-01-01T00:00:00Z", "r.example/x:1", {}, "clock", False, "timedatectl set-ntp true"),
    ('Get "https://r.example:5000/v2/": x509: certificate signed by unknown authority', "r.example:5000/x:1", {}, "certificate", False,
     "/etc/docker/certs.d/r.example:5000/ca.crt"),
    ('Get "https://r.example:5000/v2/": http: server gave HTTP response to HTTPS client', "r.example:5000/x:1", {}, "plain-http", False,
     "add r.example:5000 to gpu_insecure_registries"),
    # what passes
    ("net/http: TLS handshake timeout", CUDA, {}, "network", True, "cannot be reached"),
    ("unexpected EOF", CUDA, {}, "network", True, "unexpected EOF"),
    ("received unexpected HTTP status: 503 Service Unavailable", CUDA, {}, "network", True, "503"),
    ("dial tcp: lookup registry-1.docker.io on 1.1.1.1:53: server misbehaving", CUDA, {}, "network", True, "server misbehaving"),
    ("read tcp 10.0.0.5:44216->104.18.1.2:443: read: connection reset by peer", CUDA, {}, "network", True, "reset by peer"),
    ("filesystem layer verification failed for digest sha256:ab", CUDA, {}, "digest", True, "does not match its digest"),
    # what an old Docker or a page of a portal gives
    ("mediaType in manifest should be 'application/vnd.docker.distribution.manifest.v2+json' not ''", CUDA, {}, "format", False,
     "use a newer Docker"),
    ("error parsing HTTP 200 response body: invalid character '<' looking for beginning of value", CUDA, {}, "format", False, "read"),
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", CUDA, {}, "daemon", False,
     "journalctl -u docker"),
    ("error creating overlay mount: read-only file system", CUDA, {}, "daemon", False, "Docker on this host cannot pull"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "reference", "more", "kind", "passing", "words"), SAID, ids=[each[0][:50] for each in SAID])
def test_fault(said: str, reference: str, more: dict[str, object], kind: str, passing: bool, words: str) -> None:
    found = fault(said, reference, **more)  # type: ignore[arg-type]
    assert (found.kind, found.passing) == (kind, passing), found
    assert words in found.sentence
    assert "\n" not in found.sentence and ": " in found.sentence and "secret" not in found.sentence and len(found.sentence) < 420


def test_an_error_over_several_lines_or_without_words_is_one_sentence() -> None:
    assert "\n" not in fault("first\nsecond\r\n", "a/b:1").sentence
    assert "it said nothing" in fault("  ", "a/b:1").sentence
