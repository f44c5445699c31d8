"""Relations of the kernel: its headers, its modules, who has the GPU, Secure Boot."""

from __future__ import annotations

import re

from bringup.doctor.facts import Facts
from bringup.doctor.relations.lines import matched
from bringup.doctor.relations.registry import relation


def _kernels(facts: Facts) -> list[str]:
    text = facts.command(r"^ls\b.*/lib/modules/?$") or ""
    return [each for each in re.split(r"\s+", text) if re.match(r"\d+\.\d+", each)]


def numbers(kernel: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", kernel)[:5])


def dkms_kernels(facts: Facts) -> dict[str, str] | None:
    """{kernel: state} of the nvidia module by dkms status, "" for one that was only added; None where it was not asked."""
    text = facts.command("^dkms status")
    if text is None:
        return None
    found: dict[str, str] = {}
    for line in text.split("\n"):
        match = re.match(r"^\s*nvidia[\w-]*[/,]\s*[\d.]+(?:,\s*(?P<kernel>[^,\s]+),\s*\w+)?\s*:\s*(?P<state>\w+)", line)
        if match:
            found[match["kernel"] or ""] = match["state"]
    return found


@relation
def no_module_for_the_running_kernel(facts: Facts) -> list[str]:
    said = re.search(r"Module nvidia not found in directory /lib/modules/(\S+)", facts.everything)
    built = dkms_kernels(facts)
    if built is not None and facts.kernel and built and built.get(facts.kernel) != "installed":
        return [f"dkms has no nvidia module installed for {facts.kernel} (it has: {', '.join(filter(None, built)) or 'none'})"]
    if said and (built or len(_kernels(facts)) > 1):
        return [said[0]]
    return []


@relation
def another_kernel_has_the_module(facts: Facts) -> list[str]:
    built = dkms_kernels(facts) or {}
    running = facts.kernel
    others = [each for each, state in built.items() if each and each != running and state in ("installed", "built")]
    if running and others and built.get(running) != "installed":
        return [f"the module is built for {', '.join(others)}, {running} runs"]
    return []


@relation
def no_module_for_the_next_kernel(facts: Facts) -> list[str]:
    built, running = dkms_kernels(facts), facts.kernel
    default = facts.find(r"/boot/vmlinuz-(\S+)", facts.command(r"grubby|readlink.*vmlinuz|ls.*vmlinuz") or "")
    installed = [re.sub(r"^linux-image-", "", each) for each in facts.packages if re.match(r"^linux-image-\d", each)]
    newest = max([*_kernels(facts), *installed, *([default] if default else [])], key=numbers, default=None)
    if not newest or not running or built is None or built.get(running) != "installed" or numbers(newest) <= numbers(running):
        return []
    return (
        []
        if built.get(newest) == "installed"
        else [f"{running} runs; {newest} is there for the next boot, without an nvidia module"]
    )


@relation
def default_kernel_is_not_the_running_one(facts: Facts) -> list[str]:
    default = facts.find(r"vmlinuz-(\S+)", facts.command(r"grubby.*default") or "")
    if default and facts.kernel and default != facts.kernel:
        return [f"{facts.kernel} runs, {default} is the one to boot"]
    text = facts.command("needs-restarting") or ""
    return matched(r"^.*(?:reboot is required|Reboot is required).*$", text)


@relation
def headers_missing(facts: Facts) -> list[str]:
    text = facts.command(r"apt(?:-cache)? (?:policy|show).*linux-headers")
    if text is not None and facts.kernel and (not text.strip() or re.search(r"Install(?:ed|iert):? ?\((?:none|keine)\)", text)):
        return [f"linux-headers-{facts.kernel} is not installed"]
    names = [each for each in facts.packages if re.match(r"^(?:linux-headers-\d|kernel(?:-\w+)?-devel)", each)]
    if (
        facts.kernel
        and facts.command(r"(?:dpkg|rpm).*(?:headers|devel)") is not None
        and not any(facts.kernel in each for each in names)
    ):
        version = facts.kernel.rsplit(".", 1)[0]
        if not any(facts.packages[each] == version for each in names):
            return [f"no headers of {facts.kernel} among {', '.join(names) or 'the packages'}"]
    listing = facts.command(r"^ls\b.*/lib/modules/\S*/build") or ""
    return matched(r"^.*(?:No such file|nicht gefunden).*$", listing)


@relation
def dkms_only_added(facts: Facts) -> list[str]:
    built = dkms_kernels(facts)
    if re.search(r"Install(?:ed|iert): ?\d", facts.command(r"apt(?:-cache)? policy.*linux-headers") or ""):
        return []  # something else keeps it from being built
    return ["dkms status: nvidia is only added, built for no kernel"] if built and set(built.values()) == {"added"} else []


@relation
def nouveau_has_the_gpu(facts: Facts) -> list[str]:
    found = re.search(r"^.*Kernel driver in use:\s*nouveau.*$", facts.everything, re.M)
    if found:
        return [found[0].strip()]
    if facts.modules and "nouveau" in facts.modules and "nvidia" not in facts.modules:
        return ["lsmod shows nouveau, and no nvidia"]
    return []


@relation
def nouveau_in_spite_of_its_blacklist(facts: Facts) -> list[str]:
    """A list that blocks nouveau is there, and it is loaded all the same."""
    loaded = bool(facts.modules and "nouveau" in facts.modules) or "Kernel driver in use: nouveau" in facts.everything
    blocked = next((each.name for each in facts.sources if re.search(r"^\s*blacklist\s+nouveau", each.text, re.M)), None)
    named = re.search(r"^.*(/etc/modprobe\.d/\S*(?:nouveau|blacklist)\S*\.conf).*$", facts.everything, re.M)
    if named and re.search("no such|cannot access", named[0], re.I):
        named = None
    if not loaded or not (blocked or named):
        return []
    times = {path: int(at) for at, path in re.findall(r"^\s*(\d{9,11})\s+(/\S+)", facts.everything, re.M)}
    images = {path: at for path, at in times.items() if re.search(r"initrd|initramfs", path)}
    lists = {path: at for path, at in times.items() if "modprobe.d" in path}
    if images and lists and min(images.values()) > max(lists.values()):
        return []
    return [f"nouveau is loaded, and {blocked or (named[1] if named else '')} blocks it"]


@relation
def vfio_has_the_gpu(facts: Facts) -> list[str]:
    text = facts.command("lspci") or ""
    return matched(r"^.*Kernel driver in use:\s*(?:vfio-pci|pci-stub|xen-pciback).*$", text)


@relation
def no_nvidia_device(facts: Facts) -> list[str]:
    text = facts.command(r"^lspci\b")
    if text is None or re.search(r"nvidia|10de", text, re.I):
        return []
    # a list of all devices without one, or a search that found nothing
    asked = next(each.name for each in facts.sources if each.name.startswith("$ lspci"))
    if (re.search(r"10de|nvidia", asked, re.I) and "0680" not in asked) or len(text.strip().splitlines()) > 3:
        return ["lspci shows no NVIDIA device"]
    return []


@relation
def secure_boot_on(facts: Facts) -> list[str]:
    text = facts.command("mokutil --sb-state") or ""
    found = re.search(r"^.*SecureBoot enabled.*$", text, re.M) or re.search(
        r"^.*secureboot: Secure boot enabled.*$", facts.everything, re.M
    )
    return [found[0].strip()] if found else []


@relation
def secure_boot_off(facts: Facts) -> list[str]:
    text = facts.command("mokutil --sb-state") or ""
    return matched(r"^.*(?:SecureBoot disabled|EFI variables are not supported).*$", text)


@relation
def key_not_enrolled(facts: Facts) -> list[str]:
    text = facts.command("mokutil --(?:test-key|list-new)") or ""
    found = re.search(r"^.*is not enrolled.*$", text, re.M)
    return [found[0].strip()] if found and secure_boot_on(facts) else []
