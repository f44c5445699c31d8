"""Stands before the lab's registry and fails as it is told to: `registry_proxy.py ADDRESS PORT UPSTREAM RULES LOG SENT`.

RULES is a JSON file, read anew for each request, that may be missing: a list of rules, of which the first that fits and is not used up
counts. Keys of a rule:
    path     regular expression that the request's path must hold
    times    how often it counts (default: always)
    status   answer this, with `headers`, and an error of the registry's kind with `code` and `message`
    login    USER:PASSWORD, without which the answer is 401
    cut      end the connection after so many bytes of the answer
    rate     bytes a second
LOG gets `METHOD PATH` of each request; SENT gets `CLIENT BEGAN ENDED PATH` of each blob that was sent, in seconds.
Imports nothing of the lab, so that it starts quickly.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import sys
import threading
import time
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHUNK = 64 << 10
_lock = threading.Lock()
_used: Counter[str] = Counter()


def rule_for(path: str, authorization: str, rules: Path) -> dict[str, Any]:
    """The rule that counts for a request now; its use is counted. {}: as usual."""
    with _lock:
        try:
            found: list[dict[str, Any]] = json.loads(rules.read_text())
        except FileNotFoundError:
            return {}
        for rule in found:
            name = json.dumps(rule, sort_keys=True)
            if not re.search(rule["path"], path) or _used[name] >= rule.get("times", sys.maxsize):
                continue
            if "login" in rule and authorization == "Basic " + base64.b64encode(rule["login"].encode()).decode():
                continue
            _used[name] += 1
            return rule
    return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, upstream: str, rules: Path, log: Path, sent: Path, **named: Any) -> None:
        self._upstream, self._rules, self._log, self._sent = upstream, rules, log, sent
        super().__init__(*arguments, **named)

    def do_GET(self) -> None:
        with _lock, self._log.open("a") as log:
            log.write(f"{self.command} {self.path}\n")
        rule = rule_for(self.path, self.headers.get("Authorization", ""), self._rules)
        if "login" in rule:
            self._refuse(401, "UNAUTHORIZED", "authentication required", {"WWW-Authenticate": 'Basic realm="lab"'})
        elif "status" in rule:
            self._refuse(rule["status"], rule.get("code", "UNKNOWN"), rule.get("message", "told to"), rule.get("headers", {}))
        else:
            self._forward(rule)

    do_HEAD = do_GET

    def _refuse(self, status: int, code: str, message: str, headers: dict[str, str]) -> None:
        content = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _forward(self, rule: dict[str, Any]) -> None:
        self.close_connection = True
        began = time.monotonic()
        connection = http.client.HTTPConnection(self._upstream, timeout=30)
        names = {name for name in self.headers if name.lower() not in ("authorization", "connection")}
        headers = {
            name: ", ".join(self.headers.get_all(name, [])) for name in names
        }  # Docker sends a line for each type it accepts
        try:
            connection.request(self.command, self.path, headers=headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            sent = 0
            while self.command != "HEAD" and sent < rule.get("cut", sys.maxsize) and (chunk := answer.read(CHUNK)):
                self.wfile.write(chunk[: rule.get("cut", sys.maxsize) - sent])
                sent += len(chunk)
                time.sleep(len(chunk) / rule["rate"] if "rate" in rule else 0)
        except (OSError, http.client.HTTPException):
            return  # the registry is down, or the client has gone: the connection ends
        finally:
            connection.close()
            if self.command == "GET" and "/blobs/" in self.path:
                with _lock, self._sent.open("a") as sent_log:
                    sent_log.write(f"{self.client_address[0]} {began:.3f} {time.monotonic():.3f} {self.path}\n")


def main() -> None:
    address, port, upstream, rules, log, sent = sys.argv[1:]
    handler = partial(Handler, upstream=upstream, rules=Path(rules), log=Path(log), sent=Path(sent))
    ThreadingHTTPServer((address, int(port)), handler).serve_forever()


if __name__ == "__main__":
    main()
