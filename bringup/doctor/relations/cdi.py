"""Relations of CDI specs: of which driver, with which devices, for which engine."""

from __future__ import annotations

import re

from bringup import versions
from bringup.doctor.facts import Facts
from bringup.doctor.relations.driver import same
from bringup.doctor.relations.lines import matched
from bringup.doctor.relations.registry import relation


def _cdi(facts: Facts) -> str | None:
    return facts.file(r".*/cdi/.*\.(?:ya?ml|json)")


@relation
def cdi_spec_of_another_driver(facts: Facts) -> list[str]:
    text, loaded = _cdi(facts), facts.driver or facts.find(r"loaded module:\s*(\d{3}\.\d+(?:\.\d+)?)")
    found = re.search(r"lib(?:cuda|nvidia-ml)\.so\.(\d{3}\.\d+(?:\.\d+)?)", text or "")
    if found and loaded and not same(found[1], loaded):
        return [f"the CDI spec names {found[0]}, loaded is {loaded}"]
    return []


@relation
def cdi_spec_without_uvm(facts: Facts) -> list[str]:
    text = _cdi(facts) or (facts.everything if "deviceNodes" in facts.everything else "")
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    return (
        ["the CDI spec has no /dev/nvidia-uvm"]
        if re.search(r"path:\s*\S*/dev/nvidia(?:ctl|\d)|\"path\":\s*\"/dev/nvidia(?:ctl|\d)", text)
        and "/dev/nvidia-uvm" not in text
        else []
    )


@relation
def cdi_major_differs(facts: Facts) -> list[str]:
    found = re.search(r"/dev/nvidia-uvm\"?,?\s*\n?(?:.*\n){0,3}?\s*\"?major\"?:\s*(\d+)", _cdi(facts) or "")
    now = facts.find(r"^\s*(\d+)\s+nvidia-uvm\s*$", facts.file("/proc/devices") or "")
    return (
        [f"the CDI spec has major {found[1]} for nvidia-uvm, /proc/devices has {now}"]
        if found and now and found[1] != now
        else []
    )


@relation
def cdi_spec_not_readable(facts: Facts) -> list[str]:
    text = facts.command(r"^(?:stat|ls -l|ls -la)\b.*cdi") or ""
    return matched(r"^\s*(?:0?[67][0-7]0\s|-rw-[r-]-----).*\.(?:yaml|json).*$|^\s*7[0-5]0\s.*cdi\s*$", text)


@relation
def cdi_spec_missing(facts: Facts) -> list[str]:
    text = facts.command(r"^(?:ls|find)\b.*/cdi\b")
    listed = facts.command(r"nvidia-ctk cdi list")
    if text is not None and not re.search(r"\.(?:yaml|json)", text):
        return ["no CDI spec in /etc/cdi and /var/run/cdi"]
    return ["nvidia-ctk cdi list finds no device"] if listed is not None and "nvidia.com/gpu" not in listed else []


@relation
def cdi_version_newer_than_podman(facts: Facts) -> list[str]:
    version = facts.find(r"cdiVersion\"?:\s*\"?(\d+\.\d+\.\d+)", facts.everything)
    podman = facts.find(r"podman version (\d+\.\d+)")
    if version and podman and versions.key(version) >= (0, 7) and versions.key(podman) < (5,):
        return [f"the spec is of CDI {version}, podman is {podman}"]
    return []


@relation
def cdi_refresh_failed(facts: Facts) -> list[str]:
    text = facts.command(r"nvidia-cdi-refresh") or ""
    return matched(r"^.*(?:Result=exit-code|Active: failed|\bfailed\b.*CDI|ExecMainStatus=[1-9]).*$", text)
