"""Relations of the container toolkit: installed, known to Docker, and what its config.toml says."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.docker import docker_is_rootless
from bringup.doctor.relations.registry import relation


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
def file_without_the_runtime(facts: Facts) -> list[str]:
    """daemon.json was read, and it names no nvidia runtime; nor do the daemon's flags."""
    if facts.daemon is None or "nvidia" in (facts.daemon_text or "") or "nvidia" in facts.unit_flags:
        return []
    return ["daemon.json names no nvidia runtime"]


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
def default_runtime_without_driver(facts: Facts) -> list[str]:
    if (facts.daemon or {}).get("default-runtime") != "nvidia":
        return []
    text = facts.command(r"^nvidia-smi(?:\s+-L)?$") or ""
    failed = re.search(r"^.*(?:has failed|couldn.t communicate|exit 9|No devices|not found).*$", text, re.M)
    return ["default-runtime is nvidia", failed[0].strip()] if failed else []


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
