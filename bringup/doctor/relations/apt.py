"""Relations of package managers: sources that clash, lists that are none, keys that are none, candidates, locks."""

from __future__ import annotations

import re

from bringup import sources as apt_sources
from bringup.doctor.facts import Facts
from bringup.doctor.relations.lines import matched
from bringup.doctor.relations.registry import relation

# of stat ("0 644"), file, ls -l
EMPTY_OR_HIDDEN = (
    r"^\s*0(?:\s.*)?$|^.*:\s*(?:empty|HTML document.*)$|^.*No such file.*$"
    r"|^-\S+\s+\d+\s+\S+\s+\S+\s+0\s.*$|^\s*\d+\s+6[04]0\b.*$"
)


def _entries(facts: Facts) -> list[apt_sources.Entry]:
    found: list[apt_sources.Entry] = []
    for each in facts.sources:
        path = each.name if each.name.startswith("/") else ""
        if path.endswith((".list", ".sources")):
            found += apt_sources.parse_file(path, each.text)[0]
        elif re.search(r"^\$ .*(?:grep|cat|tail|head).*sources\.list", each.name) or each.name == "message":
            found += _of_a_mixture(each.text)
    return found


def _of_a_mixture(text: str) -> list[apt_sources.Entry]:
    """Entries of one-line files, with grep's file names or without, and of deb822 stanzas, in one text."""
    found: list[apt_sources.Entry] = []
    for line in text.split("\n"):
        match = re.match(r"^(?:(/\S+?):(?:\d+:)?)?\s*(deb\s.*)$", line)
        if match:
            found += apt_sources.parse_file(f"{match[1] or 'a'}.list", match[2])[0]
    for stanza in re.split(r"\n\s*\n|^(?=Types:)", text, flags=re.M):
        if re.search(r"^URIs:", stanza, re.M):
            stanza = "\n".join(line for line in stanza.split("\n") if re.match(r"^[A-Z][A-Za-z-]+:|^\s", line))
            found += apt_sources.parse_file("a.sources", stanza)[0]
    return found


@relation
def one_source_with_two_keyrings(facts: Facts) -> list[str]:
    by_place: dict[tuple[str, str], dict[str | None, str]] = {}
    for each in _entries(facts):
        by_place.setdefault((apt_sources.normal(each.uri), each.suite.strip("/")), {})[each.signed_by] = each.path
    for (uri, suite), keyrings in by_place.items():
        if len(keyrings) > 1:
            return [f"{uri} {suite}: signed by " + " and by ".join(str(each or "no named keyring") for each in keyrings)]
    return []


@relation
def list_file_that_is_none(facts: Facts) -> list[str]:
    """A page or an error text was saved as a list of sources."""
    for each in facts.sources:
        if re.search(r"sources\.list(?:\.d/|$)|\.list$", each.name):
            found = re.search(
                r"^.*(?:<!doctype|<html|unsupported distribution|404: not found|^404|access denied).*$", each.text, re.M | re.I
            )
            if found:
                return [f"{each.name}: {found[0].strip()[:120]}"]
    return []


@relation
def keyring_that_is_none(facts: Facts) -> list[str]:
    """A keyring is empty, is a page, or can be read by root alone."""
    for each in facts.sources:
        if re.search(r"/\S*(?:keyring|trusted\.gpg)\S*|\.(?:gpg|asc)$", each.name):
            if each.name.startswith("/") and (
                not each.text.strip() or re.search(r"<!doctype|<html|not found|blocked", each.text, re.I)
            ):
                return [f"{each.name} is no key: {each.text.strip()[:80] or 'it is empty'}"]
            if each.name.startswith(("$ stat", "$ ls", "$ file", "$ wc")):
                line = re.search(
                    EMPTY_OR_HIDDEN,
                    each.text,
                    re.M,
                )
                if line:
                    return [f"{each.name[2:]}: {line[0].strip()}"]
    return []


@relation
def candidates_from_two_origins(facts: Facts) -> list[str]:
    text = facts.command(r"apt(?:-cache)? (?:policy|madison)") or ""
    nvidia = re.search(r"^.*developer\.download\.nvidia\.com.*$", text, re.M)
    distro = re.search(
        r"^.*(?:ubuntu\.com|debian\.org|/ubuntu |/debian ).*(?:restricted|multiverse|non-free|main).*$", text, re.M
    )
    return [nvidia[0].strip(), distro[0].strip()] if nvidia and distro and re.search("nvidia|cuda", text) else []


@relation
def clock_differs(facts: Facts) -> list[str]:
    times = [int(each) for each in re.findall(r"\b(1[6-9]\d{8})\b", facts.command(r"^date \+%s") or "")]
    other = facts.find(r"(?:controller|control machine|reference).{0,20}?\b(1[6-9]\d{8})\b")
    if times and other and abs(times[0] - int(other)) > 60:
        return [f"the clock differs by {abs(times[0] - int(other))} s"]
    text = facts.command(r"timedatectl|chronyc|ntpq") or ""
    return matched(r"^.*(?:System clock synchronized: no|NTP synchronized: no|Leap status\s*: Not synchronised).*$", text)


@relation
def half_installed_packages(facts: Facts) -> list[str]:
    text = facts.command(r"dpkg\b.*(?:-l|--list|--audit|-C)") or ""
    found = re.findall(r"^[iuh][UFHWt]R?\s+\S+", text, re.M)
    names = [each.split()[1] for each in found]
    audit = re.search(
        r"^.*(?:only half (?:configured|installed)|must be.*(?:configured|installed)|not yet configured).*$", text, re.M
    )
    return [f"not whole: {', '.join(names)}"] if names else [audit[0].strip()] if audit else []


@relation
def cloud_init_running(facts: Facts) -> list[str]:
    text = facts.command("cloud-init status") or ""
    found = re.search(r'^.*(?:status: running|"status":\s*"running").*$', text, re.M)
    return [found[0].strip()[:160]] if found else []


@relation
def cloud_init_degraded(facts: Facts) -> list[str]:
    text = facts.command("cloud-init status") or ""
    if re.search(r"\"status\":\s*\"(?:running|error)\"|status: (?:running|error)", text):
        return []
    found = re.search(r"^.*(?:degraded done|\"recoverable_errors\":\s*\{\s*\").*$", text, re.M)
    code = re.search(r"status: done\s*\n\s*(?:exit\s*)?2\s*$", text, re.M)
    return [(found or code)[0].strip()[:160]] if found or code else []  # type: ignore[index]


@relation
def kernel_in_the_transaction(facts: Facts) -> list[str]:
    """A simulated installation of the driver brings another kernel."""
    text = facts.command(r"(?:apt|apt-get|dnf|yum)\b.*(?:-s\b|--simulate|--dry-run|--assumeno|install)") or ""
    found = re.search(
        r"^\s*(?:Inst|Installing:?)?\s*(?:linux-image-|linux-image-unsigned-|kernel(?:-core)?[\s-])(\d[\w.+-]*)", text, re.M
    )
    if found and re.search("nvidia", text) and facts.kernel and not facts.kernel.startswith(found[1].split()[0]):
        return [f"{found[0].strip()}, while {facts.kernel} runs"]
    return []


@relation
def repository_of_another_release(facts: Facts) -> list[str]:
    """A source of CUDA's is for another version of the distribution, or for another architecture."""
    os = facts.file("/(?:etc|usr/lib)/os-release") or ""
    version = (facts.find(r'^VERSION_ID="?([\d.]+)', os) or "").replace(".", "")
    arch = facts.arch
    for distro, number, place in re.findall(r"cuda/repos/([a-z]+)(\d+)/(\w+)", facts.everything):
        if facts.os_id == distro and version and number != version and not (distro == "rhel" and version.startswith(number)):
            return [f"the repository is {distro}{number}, the host is {distro} {version}"]
        if (arch in ("aarch64", "arm64") and place in ("x86_64", "arm64", "aarch64")) or (arch == "x86_64" and place == "sbsa"):
            return [f"the repository is for {place}, the host is {arch}"]
    return []


@relation
def distribution_without_cuda_repository(facts: Facts) -> list[str]:
    os = facts.file("/(?:etc|usr/lib)/os-release") or facts.everything
    name, version = facts.find(r'^ID="?([a-z]+)', os), facts.find(r'^VERSION_ID="?([\d.]+)', os)
    if name == "ubuntu" and version and not (version.endswith(".04") and int(version[:2]) % 2 == 0):
        return [f"Ubuntu {version} is an interim release"]
    if name in ("pop", "linuxmint", "neon", "zorin", "elementary", "kali", "parrot"):
        return [f"{name} {version or ''} is no distribution that NVIDIA publishes for"]
    return []


@relation
def module_stream_differs(facts: Facts) -> list[str]:
    text = facts.command(r"(?:dnf|yum) module list") or ""
    enabled = re.search(r"^\s*nvidia-driver\s+(\S+)\s.*\[e\].*$", text, re.M)
    wanted = facts.find(r"(?:wanted|asked for|installing)[: ]+(\S*-dkms|\d{3}\S*|latest)")
    if enabled and wanted and wanted != enabled[1]:
        return [enabled[0].strip()]
    return []
