"""Relations of Docker itself: which Docker it is, whether it runs, its control groups."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.lines import matched
from bringup.doctor.relations.registry import relation


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
def live_restore_off_with_containers(facts: Facts) -> list[str]:
    off = (facts.info_value("LiveRestoreEnabled") or "").lower() == "false" or "Live Restore Enabled: false" in (facts.info or "")
    count = facts.command(r"docker ps -q.*wc -l") or facts.info_value("ContainersRunning") or ""
    running = facts.find(r"^\s*Running:\s*(\d+)", facts.info or "") or count.strip()
    return [f"live-restore is off, {running} containers run"] if off and running.isdigit() and int(running) > 0 else []


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
def char_links_missing(facts: Facts) -> list[str]:
    text = facts.command(r"^ls\b.*/dev/char") or ""
    return matched(r"^.*(?:cannot access|No such file).*$", text)


@relation
def legacy_injection(facts: Facts) -> list[str]:
    text = facts.file(r".*/nvidia-container-runtime/config\.toml") or facts.command(r"nvidia-ctk config") or ""
    return matched(r'^\s*mode\s*=\s*"legacy".*$', text)


@relation
def legacy_injection_under_systemd(facts: Facts) -> list[str]:
    """The old hook with systemd's cgroups: GPUs are lost at the next daemon-reload."""
    systemd, how = docker_uses_systemd_cgroups(facts), legacy_injection(facts) or char_links_missing(facts)
    return [*systemd, *how] if systemd and how else []


@relation
def host_is_a_container(facts: Facts) -> list[str]:
    """It says so itself. One that was accepted as a host (gpu_accept), or where all works, is used so on purpose."""
    if '"container-host"' in (facts.file("/etc/gpu-bringup/provenance.json") or ""):
        return []
    said = facts.command(r"systemd-detect-virt(?: -c| --container)?\s*$") or ""
    kind = re.search(r"^\s*(docker|podman|lxc|lxc-libvirt|systemd-nspawn|openvz|container-other|rkt)\s*$", said, re.M)
    group = re.search(r"^.*/(?:docker|kubepods|lxc).*$", facts.file("/proc/1/cgroup") or "", re.M)
    works = facts.smi_version is not None and "Server Version" in (facts.info or "")
    if works or not (kind or group):
        return []
    return [f"systemd-detect-virt: {kind[1]}"] if kind else [group[0].strip()] if group else []
