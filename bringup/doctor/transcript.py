"""Pasted shell sessions and notes -> sources: what stands below a prompt is what that command printed."""

from __future__ import annotations

import re

from bringup.doctor.source import MESSAGE, Source

# what a `#` at a line's beginning is taken for a root prompt before; anything else is a comment
COMMANDS = frozenset([
    "apt", "apt-cache", "apt-config", "apt-get", "apt-key", "apt-mark", "awk", "bash", "cat", "chronyc", "cloud-init", "command",
    "curl", "date", "dcgmi", "df", "dkms", "dmesg", "dnf", "docker", "dpkg", "dpkg-query", "du", "env", "find", "findmnt", "free",
    "fuser", "gcc", "getenforce", "getsebool", "gpg", "grep", "grubby", "head", "hostnamectl", "id", "ip", "journalctl", "ldconfig",
    "ldd", "ls", "lsb_release", "lscpu", "lsinitramfs", "lsinitrd", "lsmod", "lsof", "lspci", "lsblk", "mokutil", "mount", "modinfo",
    "modprobe", "needs-restarting", "nvcc", "nvidia-container-cli", "nvidia-ctk", "nvidia-smi", "pgrep", "podman", "printenv", "ps",
    "python", "python3", "readlink", "rpm", "sestatus", "snap", "ss", "stat", "sudo", "sysctl", "systemctl", "systemd-detect-virt",
    "tail", "tar", "timedatectl", "timeout", "ubuntu-drivers", "ulimit", "uname", "update-initramfs", "uptime", "which", "yum",
    "zypper",
])  # fmt: skip
FILES = {"daemon.json": "/etc/docker/daemon.json", "config.toml": "/etc/nvidia-container-runtime/config.toml"}
PROMPT = re.compile(r"^\s*(?P<who>\(?[\w.-]+@[\w.-]+\)?[^\s$#]{0,80}(?:\s[^\s$#]{1,80})?)?\s*(?P<sign>[$#])\s+(?P<command>\S.*)$")
TAIL_HEADER = re.compile(r"^==> (/\S+) <==$")
BEFORE = re.compile(
    r"^(?:sudo(?:\s+-[A-Za-z]+)*\s+|env\s+(?=\w+=)|[A-Z_][A-Z0-9_]*=\S*\s+|timeout(?:\s+-\S+(?:\s+\d+\w?(?=\s+\d))?)*\s+\d+\w?\s+)+"
)
READS_FILE = re.compile(r"^(?:cat|head|tail|less|more|zcat)(?:\s+-\S+|\s+\d+)*\s+(/[^\s|;&>*?]+)(?:\s*[|;].*)?$")


def source_name(command: str) -> str:
    """`$ uname -r` of `sudo LC_ALL=C uname  -r`; a command that only prints a file is that file."""
    bare = " ".join(BEFORE.sub("", command.strip()).split())
    file = READS_FILE.match(bare)
    return file[1] if file else f"$ {bare}"


def read_transcript(name: str, text: str) -> list[Source]:
    """A pasted text, split at the prompts in it; what stands before the first is a message."""
    found: list[Source] = []
    lines: list[str] = []
    typed: list[str] = []  # what was done is evidence too: a hold by a pattern, a lock that was deleted

    def finish() -> None:
        while name.endswith(".json") and lines and (not lines[-1].strip() or lines[-1].startswith("#")):
            lines.pop()  # a remark of who pasted it; a comment in the file itself stands before its last brace
        if any(line.strip() for line in lines) or name != MESSAGE:
            found.append(Source(name, "\n".join(lines)))

    for line in text.split("\n"):
        heading = heading_of(line)
        if heading is None:
            lines.append(line)
            continue
        finish()
        if heading[0].startswith("$ "):
            typed.append(heading[0])
        name, lines = heading[0], [heading[1]] if heading[1] else []
    finish()
    if typed:
        found.append(Source(MESSAGE, "\n".join(typed)))
    return found


def heading_of(line: str) -> tuple[str, str] | None:
    """(source, what stands on the same line after `->`) of a prompt, or of a header that names a file."""
    tail = TAIL_HEADER.match(line)
    if tail:
        return tail[1], ""
    prompt = PROMPT.match(line) if line.lstrip()[:1] in ("$", "#") or "@" in line[:80] else None
    if prompt is None:
        return None
    note = prompt["sign"] == "#" and not prompt["who"]  # "# uname -m: aarch64", as people note it; "$ x -> y" too
    command, *rest = re.split(r": | -> " if note else " -> ", prompt["command"], maxsplit=1)
    arrow, output = bool(rest), rest[0] if rest else ""
    first = BEFORE.sub("", command).split()[:1]
    if not first:
        return None
    word = first[0].rstrip(":")
    if re.fullmatch(r"\w[\w-]*\.(?:list|sources)", word) and prompt["sign"] == "#":
        return f"/etc/apt/sources.list.d/{word}", ""
    if re.fullmatch(r"/[\w./@+-]+", word) and not prompt["who"] and prompt["sign"] == "#":
        return word, output.strip()
    if prompt["sign"] == "#" and not prompt["who"] and command.strip() in FILES:
        return FILES[word], output.strip()
    if prompt["sign"] == "#" and not prompt["who"] and word not in COMMANDS:
        return None
    return source_name(command.rstrip(":")), output.strip() if arrow else ""
