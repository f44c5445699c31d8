"""Relations of Docker: its runtimes, its variant, its cgroups, its disk, its proxy."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.lines import matched
from bringup.doctor.relations.registry import relation


@relation
def runtime_key_in_file_not_in_daemon(facts: Facts) -> list[str]:
    """What the file says is not what the daemon runs with."""
    wanted = (facts.daemon or {}).get("runtimes")
    have = facts.runtimes
    if isinstance(wanted, dict) and have is not None:
        missing = [name for name in wanted if not re.search(rf"\b{re.escape(str(name))}\b", have)]
        if missing:
            return [f"daemon.json has the runtime {missing[0]}, docker info has: {have.strip()[:120]}"]
    default, runs = (facts.daemon or {}).get("default-runtime"), facts.info_value("DefaultRuntime")
    if isinstance(default, str) and runs and default != runs and isinstance(wanted, dict):
        return [f"daemon.json has default-runtime {default}, docker info says {runs}"]
    return []


@relation
def runtime_unknown_to_daemon(facts: Facts) -> list[str]:
    have = facts.runtimes
    return [f"docker info has no runtime nvidia: {have.strip()[:120]}"] if have is not None and "nvidia" not in have else []


@relation
def default_runtime_not_among_runtimes(facts: Facts) -> list[str]:
    daemon = facts.daemon or {}
    default, known = daemon.get("default-runtime"), daemon.get("runtimes") or {}
    if not isinstance(default, str) or default in ("runc", "io.containerd.runc.v2") or default in known:
        return []
    return (
        []
        if f"--add-runtime={default}" in facts.unit_flags or f"--add-runtime {default}" in facts.unit_flags
        else [f"default-runtime is {default}, which runtimes does not have"]
    )


@relation
def runtime_binary_missing(facts: Facts) -> list[str]:
    names_it = "nvidia-container-runtime" in (facts.daemon_text or "") or (facts.daemon or {}).get("default-runtime") == "nvidia"
    if not names_it:
        return []
    text = facts.command(r"^(?:command -v|which|type|ls|stat)\b.*nvidia-container-runtime")
    if text is not None and (
        not text.strip() or re.search(r"exit 1|no such file|not found|^1$|nicht gefunden", text, re.I | re.M)
    ):
        return ["daemon.json names nvidia-container-runtime, and it is not there"]
    return toolkit_not_installed(facts)


@relation
def toolkit_not_installed(facts: Facts) -> list[str]:
    text = facts.command(r"(?:dpkg(?:-query)?|rpm|apt|dnf)\b.*nvidia-(?:container|docker)")
    gone = (
        re.search(r"no packages? found|is not installed|no path found|kein Paket|\(none\)|^\s*$|^un ", text, re.I | re.M)
        if text is not None
        else None
    )
    if (
        text is not None
        and gone
        and not re.search(r"^(?:ii|hi)\s+nvidia-container-toolkit|^nvidia-container-toolkit\S*\s+\d", text, re.M)
    ):
        return ["the package nvidia-container-toolkit is not installed"]
    text = facts.command(
        r"^(?:command -v|which|type)\b.*nvidia-(?:container-runtime-hook|container-toolkit|ctk|container-cli)|^nvidia-ctk --version"
    )
    if text is not None and (not text.strip() or re.search(r"not found|exit 1|^1$", text, re.M)):
        return ["nvidia-ctk is not there"]
    listing = facts.command(r"dpkg(?:-query)? (?:-l|-W|--list)\s*(?:\||$)|^rpm -qa\s*$")
    if (
        facts.packages
        and listing is not None
        and len(facts.packages) > 40
        and not any("nvidia-container-toolkit" in each for each in facts.packages)
    ):
        return ["the package nvidia-container-toolkit is not among the installed ones"]
    return []


@relation
def toolkit_installed(facts: Facts) -> list[str]:
    version = next((facts.packages[each] for each in facts.packages if each == "nvidia-container-toolkit"), None)
    if version:
        return [f"nvidia-container-toolkit {version} is installed"]
    text = facts.command(r"^nvidia-ctk --version|(?:command -v|which).*nvidia-c(?:tk|ontainer)") or ""
    found = re.search(r"^(?:NVIDIA Container Toolkit CLI version.*|/\S*nvidia-\S+)$", text, re.M)
    return [found[0]] if found else []


@relation
def docker_is_a_snap(facts: Facts) -> list[str]:
    text = "\n".join(
        filter(
            None,
            [facts.command(r"^snap list|^readlink|which.*docker|command -v docker|^ls\b.*docker"), facts.info, facts.daemon_text],
        )
    )
    found = re.search(
        r"^(?:docker\s+\d\S*\s+\d+\s+\S+.*|\s*/(?:usr/bin/snap|snap/bin/docker)\b.*|.*/var/snap/docker/.*)$", text, re.M
    )
    path = next((each.name for each in facts.sources if "/var/snap/docker" in each.name), None)
    return [found[0].strip()] if found else [path] if path else []


@relation
def docker_is_rootless(facts: Facts) -> list[str]:
    text = "\n".join(filter(None, [facts.info, facts.command(r"docker context|^echo \$?DOCKER_HOST|^(?:env|printenv)|^ps\b")]))
    return matched(r"^.*(?:name=rootless|^\s*rootless\s*$|/run/user/\d+/docker\.sock|rootlesskit).*$", text)


@relation
def docker_is_podman(facts: Facts) -> list[str]:
    text = facts.command(r"^docker (?:--version|version|info|-v)|^(?:ls|readlink|rpm|dpkg).*docker") or ""
    return matched(
        r"^.*(?:Emulate Docker CLI using podman|podman version|Podman Engine|podman-docker|/podman).*$", text, re.M | re.I
    )


@relation
def daemon_does_not_run(facts: Facts) -> list[str]:
    text = facts.command(r"systemctl\b.*(?:is-active|status)\b.*docker") or ""
    return matched(r"^.*(?:\binactive\b|\bfailed\b|Active: (?:inactive|failed)).*$", text)


@relation
def cgroupfs_chosen(facts: Facts) -> list[str]:
    options = (facts.daemon or {}).get("exec-opts") or []
    text = " ".join(map(str, options)) if isinstance(options, list) else str(options)
    if "native.cgroupdriver=cgroupfs" in text + facts.unit_flags:
        return ["native.cgroupdriver=cgroupfs is set for Docker"]
    return []


@relation
def docker_uses_systemd_cgroups(facts: Facts) -> list[str]:
    return ["docker info: cgroup driver systemd"] if facts.info_value("CgroupDriver") == "systemd" else []


@relation
def legacy_injection(facts: Facts) -> list[str]:
    text = facts.file(r".*/nvidia-container-runtime/config\.toml") or facts.command(r"nvidia-ctk config") or ""
    return matched(r'^\s*mode\s*=\s*"legacy".*$', text)


@relation
def char_links_missing(facts: Facts) -> list[str]:
    text = facts.command(r"^ls\b.*/dev/char") or ""
    return matched(r"^.*(?:cannot access|No such file).*$", text)


@relation
def ldconfig_of_config_missing(facts: Facts) -> list[str]:
    text = facts.file(r".*/nvidia-container-runtime/config\.toml(?:\.\w+)?") or facts.everything
    found = re.search(r'^\s*ldconfig\s*=\s*"@?(/\S+?)"', text, re.M)
    if not found:
        return []
    there = facts.command(rf"(?:ls|stat|test -\w|command -v|file)\s.*{re.escape(found[1])}")
    gone = there is not None and (
        re.search(r"no such file|exit 1|^\s*1\s*$|cannot (?:access|stat)", there, re.I | re.M) or not there.strip()
    )
    other = facts.os_id is not None and facts.os_id not in ("ubuntu", "pop", "linuxmint") and found[1].endswith("ldconfig.real")
    if gone or other:
        return [f"config.toml has ldconfig {found[1]}" + (f" on {facts.os_id}" if other else ", which is not there")]
    return []


@relation
def no_cgroups_for_a_rootful_docker(facts: Facts) -> list[str]:
    text = facts.file(r".*/nvidia-container-runtime/config\.toml") or facts.command("nvidia-ctk config") or facts.everything
    found = re.search(r"^\s*no-cgroups\s*=\s*true.*$", text, re.M)
    return [found[0].strip()] if found and not docker_is_rootless(facts) else []


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
def live_restore_off_with_containers(facts: Facts) -> list[str]:
    off = (facts.info_value("LiveRestoreEnabled") or "").lower() == "false" or "Live Restore Enabled: false" in (facts.info or "")
    count = facts.command(r"docker ps -q.*wc -l") or facts.info_value("ContainersRunning") or ""
    running = facts.find(r"^\s*Running:\s*(\d+)", facts.info or "") or count.strip()
    return [f"live-restore is off, {running} containers run"] if off and running.isdigit() and int(running) > 0 else []


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


@relation
def legacy_injection_under_systemd(facts: Facts) -> list[str]:
    """The old hook with systemd's cgroups: GPUs are lost at the next daemon-reload."""
    systemd, how = docker_uses_systemd_cgroups(facts), legacy_injection(facts) or char_links_missing(facts)
    return [*systemd, *how] if systemd and how else []


@relation
def default_runtime_without_driver(facts: Facts) -> list[str]:
    if (facts.daemon or {}).get("default-runtime") != "nvidia":
        return []
    text = facts.command(r"^nvidia-smi(?:\s+-L)?$") or ""
    failed = re.search(r"^.*(?:has failed|couldn.t communicate|exit 9|No devices|not found).*$", text, re.M)
    return ["default-runtime is nvidia", failed[0].strip()] if failed else []
