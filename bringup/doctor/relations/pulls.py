"""Relations of pulled images: the proxy, room, architecture, the stored login."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.registry import relation


@relation
def proxy_of_the_shell_alone(facts: Facts) -> list[str]:
    shell = re.search(
        r"^.*\bhttps?_proxy=\S+.*$",
        facts.command(r"^(?:env|printenv|export|echo|set)\b") or facts.file("/etc/environment") or "",
        re.M | re.I,
    )
    if shell is None:
        return []
    unit = facts.command(r"systemctl (?:show|cat).*docker")
    info = facts.info
    said = "\n".join(filter(None, [unit, info, facts.daemon_text, facts.file(r".*/docker\.service\.d/.*")]))
    if (unit is not None or info is not None) and not re.search(r"https?[_ -]?proxy", said, re.I):
        return ["the shell has a proxy, the Docker daemon has none"]
    return []


@relation
def disk_of_docker_full(facts: Facts) -> list[str]:
    root = facts.info_value("DockerRootDir") or "/var/lib/docker"
    text = facts.command(r"^df\b") or ""
    inodes = "-i" in next((each.name for each in facts.sources if each.name.startswith("$ df")), "")
    wanted = sum(
        int(each) for each in re.findall(r"(?:sum\(layers\.size\)\s*=|image_bytes:|\"size\":)\s*(\d{6,})", facts.everything)
    )
    for line in text.split("\n"):
        match = re.match(r"^\s*\S+\s+(\S+)\s+(\S+)\s+(\S+)\s+(\d+)%\s+(/\S*)\s*$", line)
        if match is None or "shm" in line or not (root.startswith(match[5]) or match[5] == "/"):
            continue
        if int(match[4]) >= 98:
            return [f"{'inodes of ' if inodes else ''}{match[5]}: {line.strip()}"]
        if wanted and match[3].isdigit() and int(match[3]) * 1024 < wanted * 2.5:
            return [f"{match[5]} has {int(match[3]) // 1024} MiB, the image needs about {int(wanted * 2.5) >> 20} MiB unpacked"]
    return []


@relation
def image_architecture_differs(facts: Facts) -> list[str]:
    machine = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(facts.arch or "")
    found = set(re.findall(r'"[Aa]rchitecture":\s*"(amd64|arm64)"', facts.everything))
    return (
        [f"the image has {', '.join(sorted(found))}, the host is {machine}"] if machine and found and machine not in found else []
    )


@relation
def login_without_a_user(facts: Facts) -> list[str]:
    """base64 of `:key` in config.json: the shell took $oauthtoken for a variable."""
    found = re.search(r'"nvcr\.io":\s*\{\s*"auth":\s*"(O[g-v]\S*|Om\S*)"', facts.everything)
    return ["the login that is stored for nvcr.io has no user name"] if found else []
