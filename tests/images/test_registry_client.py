"""What is asked of a registry from the control machine, against a server of this process: sizes, logins, errors, the wait."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typing_extensions import override

from bringup.images_lock import Platform
from bringup.references import parts
from operations.registry_client import Registry, RegistryError, is_insecure, platforms

INDEX, CHILD, CONFIG = (f"sha256:{letter * 64}" for letter in "abc")
MANIFEST = {"config": {"digest": CONFIG}, "layers": [{"size": 1000}, {"size": 24}]}
LIST = {
    "manifests": [
        {"digest": CHILD, "platform": {"os": "linux", "architecture": "amd64"}},
        {"digest": CHILD, "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": CHILD, "platform": {"os": "unknown", "architecture": "unknown"}},  # an attestation
    ]
}
SETTINGS = {"architecture": "amd64", "config": {"Env": ["PATH=/bin", "NVIDIA_REQUIRE_CUDA=cuda>=12.8"]}}
Answer = tuple[int, dict[str, str], Any]


class Server:
    """Answers by path; `asked` holds (path, Authorization) of each request."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[str], Answer] | Answer] = {}
        self.asked: list[tuple[str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, authorization = self.path.partition("?")[0], self.headers.get("Authorization", "")
                server.asked.append((path, authorization))
                found = server.answers.get(
                    path, (404, {}, {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]})
                )
                status, headers, body = found(authorization) if callable(found) else found
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            @override
            def log_message(self, *arguments: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.name = f"127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    made.answers = {
        f"/v2/team/train/manifests/{INDEX}": (200, {}, LIST),
        f"/v2/team/train/manifests/{CHILD}": (200, {}, MANIFEST),
        f"/v2/team/train/blobs/{CONFIG}": (200, {}, SETTINGS),
    }
    yield made
    made.http.shutdown()
    made.http.server_close()


def asked(server: Server, digest: str = INDEX, arch: str = "x86_64", login: tuple[str, str] | None = None) -> dict[str, Platform]:
    return platforms(Registry(server.name, insecure=True, login=login), parts(f"{server.name}/team/train:7"), digest, arch)


def test_sizes_and_requirements_of_one_architecture_and_the_names_of_the_others(server: Server) -> None:
    assert asked(server) == {"x86_64": Platform(1024, CONFIG, ("NVIDIA_REQUIRE_CUDA=cuda>=12.8",)), "aarch64": Platform()}


def test_an_architecture_that_is_missing_is_not_asked_further(server: Server) -> None:
    assert set(asked(server, arch="riscv64")) == {"x86_64", "aarch64"} and len(server.asked) == 1


def test_an_image_without_an_index_has_the_architecture_of_its_settings(server: Server) -> None:
    assert asked(server, CHILD) == {"x86_64": Platform(1024, CONFIG, ("NVIDIA_REQUIRE_CUDA=cuda>=12.8",))}


def test_a_token_is_fetched_with_the_login_and_then_used(server: Server) -> None:
    realm = f'Bearer realm="http://{server.name}/token",service="r",scope="repository:team/train:pull"'
    refused: Answer = (401, {"WWW-Authenticate": realm}, {})
    for path in list(server.answers):
        good = server.answers[path]
        server.answers[path] = lambda given, good=good: good if given == "Bearer t0k" else refused  # type: ignore[misc]
    server.answers["/token"] = (200, {}, {"token": "t0k"})
    assert asked(server, login=("me", "secret"))["x86_64"].compressed_bytes == 1024
    basic = "Basic " + base64.b64encode(b"me:secret").decode()
    assert [each for each in server.asked if each[0] == "/token"] == [("/token", basic)]


def test_a_password_goes_to_no_other_host(server: Server) -> None:
    other = Server()
    other.answers = {"/blob": (200, {}, SETTINGS)}
    server.answers[f"/v2/team/train/blobs/{CONFIG}"] = (307, {"Location": f"http://{other.name}/blob"}, {})
    for path in (f"/v2/team/train/manifests/{INDEX}", f"/v2/team/train/manifests/{CHILD}"):
        good = server.answers[path]
        server.answers[path] = lambda given, good=good: good if given else (401, {"WWW-Authenticate": 'Basic realm="r"'}, {})  # type: ignore[misc]
    assert asked(server, login=("me", "secret"))["x86_64"].compressed_bytes == 1024
    assert other.asked == [("/blob", "")]
    other.http.shutdown()
    other.http.server_close()


@pytest.mark.parametrize(
    ("answer", "says", "wait_s"),
    [
        ((429, {"Retry-After": "17"}, {"errors": [{"code": "TOOMANYREQUESTS", "message": "slow"}]}), "HTTP 429 TOOMANYREQUESTS: slow", 17),
        ((429, {"Retry-After": "Tue, 01 Dec 1998 00:00:00 GMT"}, {}), "HTTP 429", 0),
        ((429, {"Retry-After": "soon"}, {}), "HTTP 429", None),
        ((503, {}, b"<html>"), "HTTP 503", None),
        ((200, {}, b"<html>welcome</html>"), "Expecting value", None),
        ((200, {}, {"manifests": [{"platform": {"os": "linux"}}]}), "its manifest cannot be read (KeyError", None),
        ((200, {}, {"layers": []}), "its manifest cannot be read (KeyError", None),
        ((200, {}, b"x" * (5 << 20)), "is larger than 4 MiB", None),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_error_with_the_wait(server: Server, answer: Answer, says: str, wait_s: int | None) -> None:
    server.answers[f"/v2/team/train/manifests/{INDEX}"] = answer
    with pytest.raises(RegistryError) as caught:
        asked(server)
    assert says in str(caught.value) and caught.value.wait_s == wait_s


def test_a_wait_until_a_date_is_seconds_from_now(server: Server) -> None:
    server.answers[f"/v2/team/train/manifests/{INDEX}"] = (429, {"Retry-After": formatdate(time.time() + 90, usegmt=True)}, {})
    with pytest.raises(RegistryError) as caught:
        asked(server)
    assert caught.value.wait_s is not None and 80 <= caught.value.wait_s <= 91


def test_a_mirror_is_asked_at_its_address_alone(server: Server) -> None:
    found = platforms(Registry(f"http://{server.name}/"), parts("docker.io/team/train:7"), INDEX, "x86_64")
    assert found["x86_64"].compressed_bytes == 1024


def test_nobody_there_is_an_error_too() -> None:
    with pytest.raises(RegistryError, match=r"refused"):
        Registry("127.0.0.1:1", insecure=True).get("x")


@pytest.mark.parametrize(
    ("registry", "allowed", "insecure"),
    [
        ("r.example:5000", ["r.example:5000"], True),
        ("r.example", ["r.example:5000"], False),
        ("10.1.2.3:5000", ["10.0.0.0/8"], True),
        ("192.0.2.1:5000", ["10.0.0.0/8"], False),
        ("127.0.0.1:5000", [], True),
        ("localhost:5000", [], True),
        ("docker.io", [], False),
        ("https://r.example:5000/", ["r.example:5000"], True),  # a mirror
        ("https://10.1.2.3:5000", ["10.0.0.0/8"], True),
        ("https://r.example", ["10.0.0.0/8"], False),
    ],
)
def test_who_is_spoken_to_without_tls(registry: str, allowed: list[str], insecure: bool) -> None:
    assert is_insecure(registry, allowed) is insecure
