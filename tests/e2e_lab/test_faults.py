from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from http.client import RemoteDisconnected
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from e2e.lab import repository, server
from e2e.lab import repository_faults as faults

Fetch = Callable[[str], str | int]


@pytest.fixture
def fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetch]:
    """Asks the repositories' server for a path: the text, or the status when that is none of success, or 0 without an answer."""
    monkeypatch.setattr(repository, "RULES", tmp_path / "rules.json")
    folder = tmp_path / "served" / "cuda" / "repos"
    folder.mkdir(parents=True)
    (folder / "Packages").write_text("Package: libcuda1\n")
    (folder / "3bf863cc.pub").write_text("the key\n")
    handler = partial(server.Handler, directory=str(tmp_path / "served"), rules=repository.RULES)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()

        def ask(path: str) -> str | int:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{http.server_port}{path}", timeout=5) as answer:
                    text: str = answer.read().decode()
                    return text
            except urllib.error.HTTPError as problem:
                problem.close()
                return problem.code
            except (RemoteDisconnected, ConnectionError):
                return 0

        yield ask
        http.shutdown()


def test_without_rules_it_serves_the_files(fetch: Fetch) -> None:
    assert fetch("/cuda/repos/Packages") == "Package: libcuda1\n"
    assert fetch("/cuda/repos/Release") == 404


def test_a_rule_that_is_used_up_lets_the_next_requests_through(fetch: Fetch) -> None:
    faults.answer(faults.dead(times=2))
    assert [fetch("/cuda/repos/Packages") for _ in range(3)] == [0, 0, "Package: libcuda1\n"]
    assert faults.used() == {0: 2}


def test_the_first_rule_that_fits_counts_and_others_are_left_alone(fetch: Fetch) -> None:
    faults.answer(faults.status(503, faults.DRIVER_INDEX, times=1), faults.status(404))
    assert [fetch("/cuda/repos/Packages") for _ in range(2)] == [503, 404]
    assert fetch("/cuda/repos/3bf863cc.pub") == 404
    assert fetch("/other") == 404
    assert faults.used() == {0: 1, 1: 2}


def test_a_half_synced_mirror_has_another_index_than_its_release_file_names(fetch: Fetch) -> None:
    faults.answer(faults.half_synced())
    assert fetch("/cuda/repos/Packages") == "Package: libcuda1\n\n"
    assert fetch("/cuda/repos/3bf863cc.pub") == "the key\n"


def test_a_page_comes_in_the_place_of_the_key(fetch: Fetch) -> None:
    faults.answer(faults.key_is_html())
    assert "<html>" in str(fetch("/cuda/repos/3bf863cc.pub"))


def test_new_rules_are_counted_from_nothing(fetch: Fetch) -> None:
    faults.answer(faults.status(503, times=1))
    assert fetch("/cuda/repos/Packages") == 503
    faults.answer(faults.status(503, times=1))
    assert faults.used() == {}
    assert fetch("/cuda/repos/Packages") == 503


def test_only_what_a_rule_says_is_written(fetch: Fetch) -> None:
    faults.answer(faults.slow(delay_s=0.01))
    assert json.loads(repository.RULES.read_text()) == [{"path": "/cuda/", "delay_s": 0.01}]
    assert fetch("/cuda/repos/Packages") == "Package: libcuda1\n"
