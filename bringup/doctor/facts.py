"""What the sources say of the host, read when a relation asks. None or empty: the sources do not say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from bringup import versions
from bringup.dockerd import command_line, environment, unit_environment
from bringup.doctor.source import MESSAGE, Source

DRIVER = r"(\d{3}\.\d{1,3}(?:\.\d{1,3})?)"
# packages that carry the driver's version
DRIVER_PACKAGE = re.compile(
    r"^(?:lib)?(?:nvidia-(?:driver|utils|compute-utils|kernel-common|kernel-source|dkms|kernel-dkms|kernel-open-dkms|headless|firmware"
    r"|persistenced|compute|cfg1|decode|encode|extra|fbc1|gl|common|gpucomp|smi|modprobe|ml1|ptxjitcompiler1|alternative|cuda1|nvidia-ml1)"
    r"|cuda1|nvidia-ml1|cuda-drivers|xnvctrl0|kmod-nvidia)"
)
FABRIC_PACKAGE = re.compile(r"^nvidia-fabric-?manager|^cuda-drivers-fabricmanager")
PACKAGE_LINES = (
    re.compile(r"^(?P<state>[uihrp][a-zA-Z]{1,2})\s+(?P<name>[a-z0-9][a-z0-9.+-]+)(?::\w+)?\s+(?P<version>\S+)"),  # dpkg -l
    re.compile(r"^(?P<name>[a-z0-9][a-z0-9.+-]+)(?::\w+)?[\s=]+(?P<version>\d\S*)(?:\s+(?P<state>\w+).*)?$"),  # dpkg-query -W
    re.compile(r"^(?P<name>[a-z0-9][a-z0-9.+-]+)/\S+\s+(?P<version>\d\S*)\s+\w+\s+\[.*installed.*\]"),  # apt list
    re.compile(
        r"^(?P<name>[a-zA-Z][\w.+-]*?)-(?P<version>(?:\d+:)?\d[\w.~+^]*-[\w.~+]+)\.(?:x86_64|aarch64|noarch)\b"
    ),  # rpm -qa
)
# keys that tell a pasted daemon.json from other JSON
DAEMON_WORDS = (
    "runtimes",
    "default-runtime",
    "exec-opts",
    "log-driver",
    "data-root",
    "default-ulimit",
    "default-ulimits",
    "insecure-registries",
)
GPU_CLASS = re.compile(r"\[030[02]\]|3d controller|vga compatible", re.I)
PCI_ID = re.compile(r"\[10de:([0-9a-f]{4})\]|NVIDIA Corporation Device ([0-9a-f]{4})\b", re.I)


class Facts:
    """Reads over one host's sources."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources

    # --- sources -------------------------------------------------------------------------------------------------------------

    @cached_property
    def everything(self) -> str:
        return "\n".join(each.text for each in self.sources)

    def file(self, path: str) -> str | None:
        """Text of the files whose whole path the expression matches."""
        found = [each.text for each in self.sources if each.name.startswith("/") and re.fullmatch(path, each.name)]
        return "\n".join(found) if found else None

    def command(self, pattern: str) -> str | None:
        """What the commands that the expression is found in printed; None where none of them was run."""
        found = [each.text for each in self.sources if each.name.startswith("$ ") and re.search(pattern, each.name[2:])]
        return "\n".join(found) if found else None

    def find(self, pattern: str, text: str | None = None) -> str | None:
        """The first group of the expression (case-insensitive), in a text or anywhere."""
        match = re.search(pattern, self.everything if text is None else text, re.I | re.M)
        return match[1] if match else None

    # --- the machine ----------------------------------------------------------------------------------------------------------

    @cached_property
    def kernel(self) -> str | None:
        """The running kernel: `6.8.0-60-generic`."""
        text = self.command(r"^uname -[a-z]*r\b|^uname --kernel-release") or self.file("/proc/sys/kernel/osrelease")
        if text and text.split():
            return text.split()[0]
        text = self.file("/proc/version") or self.command(r"^uname -a\b")
        return self.find(r"(?:version\s+|Linux \S+ )(\d+\.\d+\S*)", text) if text else None

    @cached_property
    def arch(self) -> str | None:
        return self.find(r"\b(x86_64|aarch64|arm64)\b", self.command(r"^(?:uname|lscpu|arch|dpkg --print-architecture)") or "")

    @cached_property
    def command_line(self) -> str | None:
        return self.file("/proc/cmdline")

    @cached_property
    def os_id(self) -> str | None:
        return self.find(r'^ID="?([a-z0-9-]+)', self.file("/(?:etc|usr/lib)/os-release") or "")

    @cached_property
    def virtual(self) -> bool | None:
        """Is it a virtual machine?"""
        text = self.command(r"^systemd-detect-virt\s*(?:-v|--vm)?$")
        return None if not text or not text.strip() else text.strip().split()[0] != "none"

    @cached_property
    def gpu_lines(self) -> list[str]:
        """lspci's lines of NVIDIA's display devices."""
        return [line for line in self.everything.split("\n") if GPU_CLASS.search(line) and re.search(r"nvidia|10de:", line, re.I)]

    @cached_property
    def gpu_ids(self) -> list[str]:
        return [f"10de:{(found[1] or found[2]).lower()}" for line in self.gpu_lines if (found := PCI_ID.search(line))]

    @cached_property
    def has_lspci(self) -> bool:
        return bool(self.command(r"\blspci\b")) or bool(self.gpu_lines)

    @cached_property
    def switch_lines(self) -> list[str]:
        """lspci's lines of NVSwitches."""
        return [
            line
            for line in self.everything.split("\n")
            if re.search(r"(?:10de:|NVIDIA Corporation Device )(1af1|22a3)|NVIDIA.*NVSwitch", line, re.I)
            or (re.search(r"\[0680\]", line) and re.search("nvidia", line, re.I))
        ]

    # --- the driver -----------------------------------------------------------------------------------------------------------

    @cached_property
    def loaded(self) -> str | None:
        """The version of the kernel module in memory."""
        text = self.file("/proc/driver/nvidia/version")
        found = self.find(r"Kernel Module(?: for \S+)?\s+" + DRIVER, text) if text else None
        for each in (text, self.file("/sys/module/nvidia/version")):
            found = found or (self.find("^" + DRIVER + r"\s*$", each) if each else None)
        if not found and self.modules is not None and "nvidia" not in self.modules and self.command("^lsmod$"):
            return None  # what the kernel log has of it is over
        return found or self.find(r"NVRM version:.*?Kernel Module(?: for \S+)?\s+" + DRIVER)

    @cached_property
    def smi_version(self) -> str | None:
        """What nvidia-smi calls the driver's version."""
        return self.find(r"Driver Version\s*:\s*" + DRIVER) or self.find("<driver_version>" + DRIVER)

    @cached_property
    def driver(self) -> str | None:
        """The driver in use: loaded, or as nvidia-smi says."""
        return self.loaded or self.smi_version or self.find(r"^#?\s*driver(?: version)?[:\s]+" + DRIVER)

    @cached_property
    def on_disk(self) -> str | None:
        """The version of the kernel module that modprobe would load."""
        text = self.command(r"^(?:/sbin/)?modinfo\b.*\bnvidia\b")
        return self.find(r"^(?:version:\s*)?" + DRIVER + r"\s*$", text) if text else None

    @cached_property
    def modules(self) -> set[str] | None:
        """Loaded modules; None where nobody looked (or only for some: then those that were seen)."""
        text = self.command(r"^lsmod\b") or self.file("/proc/modules")
        return None if text is None else {line.split()[0] for line in text.split("\n") if len(line.split()) >= 2}

    @cached_property
    def packages(self) -> Mapping[str, str]:
        """Installed packages with their versions."""
        text = self.command(r"dpkg(?:-query)?\b.*(?:-l|-W|--list|--show)|^apt(?:-get)? list|^(?:rpm|dnf|yum)\b.*(?:-q|list)")
        found: dict[str, str] = {}
        pasted = [line for each in self.sources if each.name == MESSAGE for line in each.text.split("\n")]
        shapes = [(line, PACKAGE_LINES) for line in (text or "").split("\n")] + [(line, PACKAGE_LINES[:1]) for line in pasted]
        for line, forms in shapes:
            for shape in forms:
                match = shape.match(line.strip())
                if match:
                    state = match.groupdict().get("state") or "ii"
                    if state not in ("un", "rc", "deinstall"):
                        found[match["name"]] = match["version"]
                    break
        return found

    @cached_property
    def driver_packages(self) -> Mapping[str, str]:
        """Packages of the driver with their upstream version."""
        return {
            name: versions.upstream_of(version)
            for name, version in self.packages.items()
            if DRIVER_PACKAGE.match(name) and versions.is_driver(version)
        }

    @cached_property
    def fabric_packages(self) -> Mapping[str, str]:
        return {
            name: versions.upstream_of(version)
            for name, version in self.packages.items()
            if FABRIC_PACKAGE.match(name) and versions.is_driver(version)
        }

    @cached_property
    def holds(self) -> list[str]:
        text = self.command(r"apt-mark showhold|versionlock")
        found = [line.strip() for line in (text or "").split("\n") if re.match(r"^\s*[a-z0-9][\w.+:-]+\s*$", line)]
        dpkg = self.command(r"dpkg(?:-query)?\b.*(?:-l|--list)") or ""
        return found + [line.split()[1] for line in dpkg.split("\n") if re.match(r"^h[a-zA-Z]\s+\S+", line)]

    # --- Docker ---------------------------------------------------------------------------------------------------------------

    @cached_property
    def daemon_text(self) -> str | None:
        named = self.file(r".*/daemon\.json")
        if named is not None:
            return named
        for each in self.sources:  # pasted without its name
            found = re.search(r"^(?:\s*//.*\n)*\s*\{[\s\S]*\}", each.text) if each.name == MESSAGE else None
            if found and any(f'"{key}"' in found[0] for key in DAEMON_WORDS):
                return found[0]
        return None

    @cached_property
    def daemon(self) -> Mapping[str, Any] | None:
        """daemon.json where it is a JSON object."""
        return _object(self.daemon_text)

    @cached_property
    def unit_flags(self) -> str:
        """dockerd's command line by its unit, with its variables: the last ExecStart= after the last reset."""
        files = [
            self.command(r"systemctl (?:--\S+ )*(?:cat|show)\b.*docker") or "",
            self.file(r".*/docker\.service(?:\.d/.*)?") or "",
        ]
        found = ""
        for line in "\n".join(files).replace("\\\n", " ").split("\n"):
            value = line.strip().partition("ExecStart=")
            if line.strip().startswith("ExecStart=") and "dockerd" in value[2]:
                found = value[2]
        running = self.command(r"^(?:ps|pgrep)\b") or ""
        given = unit_environment("\n".join(files)) | environment(self.file(r"/etc/default/docker|/etc/sysconfig/docker.*") or "")
        if found:
            return command_line(found, given)
        return next((line for line in running.split("\n") if re.search(r"\bdockerd\b.*--?\w", line)), "")

    @cached_property
    def info(self) -> str | None:
        """`docker info` in whatever format."""
        return self.command(r"^docker (?:--\S+ )*(?:system )?info\b")

    def info_value(self, name: str) -> str | None:
        """One value of it, by the name that its JSON has: CgroupDriver, DockerRootDir."""
        text = self.info
        if text is None:
            return None
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
        found = self.find(rf'^\s*(?:{name}|{spaced}):\s*(\S+)|"{name}":\s*"?[^",}}]+', text)
        if found:
            return found
        found = self.find(rf'"{name}":\s*"?([^",}}]+)', text)
        if found:
            return found
        for each in self.sources:  # --format '{{.CgroupDriver}} {{.CgroupVersion}}'
            if each.name.startswith("$ docker") and f".{name}" in each.name:
                place = re.findall(r"\.(\w+)", each.name).index(name)
                words = each.text.split()
                return words[place] if place < len(words) else None
        return None

    @cached_property
    def runtimes(self) -> str | None:
        """The text of docker info that lists runtimes."""
        text = self.info
        found = re.search(r'^\s*Runtimes:.*$|"Runtimes":\s*\{.*', text, re.M) if text else None
        if found:
            return found[0]
        return next((each.text for each in self.sources if each.name.startswith("$ docker") and ".Runtimes" in each.name), None)


def _object(text: str | None) -> Mapping[str, Any] | None:
    try:
        value = json.loads((text or "").lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None
