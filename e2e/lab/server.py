"""Serves a folder over HTTP, and fails as it is told to: `server.py ADDRESS PORT FOLDER RULES`.

RULES is a JSON file, read anew for each request, that may be missing: a list of rules, of which the first that fits and is not used up
counts. Keys of a rule:
    path     regular expression that the request's path must hold
    times    how often it counts (default: always); how often it did is kept in RULES.used
    delay_s  wait that long first
    status   answer this and nothing else
    drop     true: end the connection without an answer
    body     answer this text
    append   answer the file with this text at its end: the index of a mirror that is half synced
Not imported by the lab, so that it starts quickly.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections import Counter
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_lock = threading.Lock()


def rule_for(path: str, rules: Path) -> dict[str, Any] | None:
    """The rule that counts for a request now; its use is counted."""
    with _lock:
        try:
            found: list[dict[str, Any]] = json.loads(rules.read_text())
        except FileNotFoundError:
            return None
        counts = rules.with_suffix(".used")
        used = Counter(json.loads(counts.read_text()) if counts.exists() else {})
        for number, rule in enumerate(found):
            if re.search(rule["path"], path) and used[str(number)] < rule.get("times", sys.maxsize):
                used[str(number)] += 1
                counts.write_text(json.dumps(used))
                return rule
    return None


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, rules: Path, **named: Any) -> None:
        self._rules = rules
        super().__init__(*arguments, **named)

    def do_GET(self) -> None:  # type: ignore[explicit-override]  # typing_extensions is not at hand here
        rule = rule_for(self.path, self._rules)
        if rule is None:
            super().do_GET()
            return
        time.sleep(rule.get("delay_s", 0))
        if rule.get("drop"):
            self.log_request("dropped")
            self.close_connection = True
        elif "status" in rule:
            self.send_error(rule["status"])
        elif "body" in rule:
            self._answer(rule["body"].encode())
        elif "append" in rule:
            file = Path(self.translate_path(self.path))
            self._answer(file.read_bytes() + rule["append"].encode()) if file.is_file() else super().do_GET()
        else:
            super().do_GET()

    def _answer(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    address, port, folder, rules = sys.argv[1:]
    handler = partial(Handler, directory=folder, rules=Path(rules))
    ThreadingHTTPServer((address, int(port)), handler).serve_forever()


if __name__ == "__main__":
    main()
