"""Why a host could not be reached: what the SSH client said -> one sentence with the next step."""

from __future__ import annotations

import re

# the first that fits; what people can do about it
_NEXT: tuple[tuple[str, str], ...] = (
    ("authentication|no authentication methods|private key|not a valid .*key", "are its user and its key right?"),
    ("does not match|bad host key", "another machine has its address, or it was made anew: then remove its old key from known_hosts"),
    ("no host key|not found in known_hosts", "add its key to known_hosts, or set ssh_strict_host_key_checking to accept-new"),
    ("resolve|name or service not known|nodename", "is its name right?"),
    ("unable to connect to port|refused|no route|unreachable", "nothing listens there: is it up, is its address right, does sshd run?"),
    ("banner|eof|reset by peer", "something listens there, but not as an SSH server does: is sshd overloaded or stuck, is ssh_port right?"),
    ("timed out|timeout", "nothing answers: is it up, is its address right, does a firewall lie between?"),
)  # fmt: skip
_ELSE = "is it up, and is its address, user and key right?"


def unreachable(said: str | None) -> str:
    """`said`: the error of the connection, or None where it is not known."""
    if not said:
        return f"the host could not be reached: {_ELSE}"
    next_step = next((words for pattern, words in _NEXT if re.search(pattern, said, re.I)), _ELSE)
    words = re.sub(r"\[Errno [^]]*] ", "", " ".join(said.split()))
    return f"the host could not be reached ({words}): {next_step}"
