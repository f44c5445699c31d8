"""From a repository's key and index to the exact versions to install, or to one sentence on why not."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence

from bringup import versions
from bringup.errors import HostError
from bringup.openpgp import NotAKey, dearmor, fingerprints
from bringup.target import Repository


def checked_key(repository: Repository, key: str | None, problem: str | None) -> bytes:
    """The key as binary packets, when it is the one we know. `key` is base64, `problem` what the download said.

    Raises HostError.
    """
    if key is None:
        raise HostError(
            f"the key {repository.key_url} could not be had ({reason(problem)}): is the address right, and reachable from the host?"
        )
    data = base64.b64decode(key)
    try:
        found = fingerprints(data)
    except NotAKey as error:
        raise HostError(f"{repository.key_url} is {error}, not the key {repository.fingerprint}: nothing was changed") from None
    if found != (repository.fingerprint,):
        raise HostError(
            f"the key of {repository.key_url} has the fingerprint {', '.join(found)}, not {repository.fingerprint}: "
            f"nothing was changed; if the key was replaced, set gpu_repositories['{repository.name}']['fingerprint']"
        )
    return dearmor(data)


def checked_index(repository: Repository, problem: str | None) -> None:
    """Raises HostError when the index could not be read or its signature is wrong."""
    if problem is None:
        return
    for pattern, why in SIGNATURE_PROBLEMS:
        if re.search(pattern, problem):
            said = why.format(key=repository.fingerprint, key_url=repository.key_url)
            raise HostError(f"the repository {repository.url} cannot be used: {said}; nothing was changed ({reason(problem)})")
    raise HostError(f"the repository {repository.url} cannot be used ({reason(problem)}): nothing was changed")


# What gpgv (Debian 12, Ubuntu), sqv (Debian 13 on) and rpm say of a signature that does not hold. sqv has no word for a key that expired
# before the signature was made: nothing bound the key to its owner at that time.
SIGNATURE_PROBLEMS = (
    (
        r"SHA1 is not considered secure",
        "its key {key} is bound to its owner by SHA-1 alone, which this host's apt no longer takes: is {key_url} the owner's newest copy?",
    ),
    (
        r"EXPKEYSIG|KEYEXPIRED|[Kk]ey is not live|No binding signature at time",
        "its key {key} has expired as {key_url} has it: a mirror may hand out an old copy, else only its owner can renew it",
    ),
    (
        r"NO_PUBKEY|Missing key",
        "it is signed by another key than {key}: was the key replaced, or is this somebody else's repository?",
    ),
    (
        r"BADSIG|Message has been manipulated",
        "its signature by {key} does not fit what it signs: a proxy or an unfinished mirror has changed it",
    ),
)


def checked_stream(repository: Repository, streams: Sequence[str], wanted: str) -> None:
    """Raises HostError where the repository lacks dnf's module stream, as in `nvidia-driver:580-open`."""
    if wanted.partition(":")[2] not in streams:
        have = f"it has {', '.join(streams)}" if streams else "it has none: is it a whole copy, with its modules?"
        raise HostError(f"{repository.url} has no module stream {wanted}: {have}")


# what begins the lines that tell most, the best first
MARKS = (
    *("W: GPG error", "W: OpenPGP signature verification failed", "E: ", "Err:"),  # apt's
    *("- Status code: ", "- Curl error ", "Error: "),  # dnf's
    "W: ",
)


def reason(said: str | None) -> str:
    """The line that tells most in apt's or dnf's output: why a signature does not hold, else the first error, warning, or the last one."""
    lines = [each.strip() for each in (said or "").splitlines() if each.strip()]
    for mark in MARKS:
        for line in lines:
            if line.startswith(mark):
                return re.sub(r"^(E: |W: |- |Error: )", "", line)[:300]
    return lines[-1][:300] if lines else "no reason was given"


# what passes by itself: a mirror in the middle of its synchronisation, a network that is coming up, an overloaded server
PASSING = re.compile(
    r"Hash Sum mismatch|File has unexpected size|Connection (failed|refused|reset|timed out)|Could not connect|Temporary failure resolving"
    r"|Could not resolve|timed out|50[0234] +[A-Z]|Mirror sync in progress|Undetermined Error"
    # curl's and dnf's: of files that a fresh index names, a 404 is a mirror in the middle of its synchronisation
    r"|returned error: 50[0234]|Failed to connect|Couldn.t connect|Couldn.t resolve|already locked by|create transaction lock"
    r"|checksum doesn.t match|Status code: 404 for [^ ]*/repodata/[0-9a-f]{32}|Interrupted by header callback|Timeout was reached",
    re.I,
)
# what does not, however often it is asked
FINAL = re.compile(
    r"NO_PUBKEY|EXPKEYSIG|KEYEXPIRED|BADSIG|No binding signature|key is not live|Missing key|Message has been manipulated"
    r"|is not signed|(^|[^:]) +40[0134] +[A-Z]|Conflicting values|not valid yet"
    r"|code: 40[0134] for [^ ]*/repomd.xml|GPG check FAILED",
    re.I | re.M,
)


def is_passing(said: str | None) -> bool:
    """May it go better in a minute?"""
    return bool(said) and PASSING.search(said or "") is not None and FINAL.search(said or "") is None


def pick(offered: Mapping[str, Sequence[str]], packages: Sequence[str], wanted: str, url: str) -> dict[str, str]:
    """The newest version of `wanted` (branch or exact) that all packages have: package -> its full version.

    Raises HostError that names what the repository has instead.
    """
    absent = [each for each in packages if not offered.get(each)]
    if absent:
        raise HostError(f"{url} has no {', '.join(absent)}: is it the right repository for this distribution?")
    common: set[str] | None = None
    for each in packages:
        fit = {versions.upstream_of(version) for version in offered[each] if versions.matches(version, wanted)}
        common = fit if common is None else common & fit
    best = versions.newest(common or ())
    if best is None:
        raise HostError(f"{url} has no driver {wanted}: {_instead({each: offered[each] for each in packages}, wanted)}")
    return {each: versions.newest(v for v in offered[each] if versions.upstream_of(v) == best) or best for each in packages}


def _instead(offered: Mapping[str, Sequence[str]], wanted: str) -> str:
    """What there is of the packages that is nearest to it: versions around it, else the newest of each branch."""
    per_package = {
        name: {versions.upstream_of(each) for each in found if versions.is_driver(each)} for name, found in offered.items()
    }
    fit = {name: versions.newest(each for each in found if versions.matches(each, wanted)) for name, found in per_package.items()}
    if all(fit.values()):
        return (
            "its packages are not of one version there (" + ", ".join(f"{name} {version}" for name, version in fit.items()) + ")"
        )
    everywhere = set.intersection(*per_package.values())
    if "." in wanted:
        same = sorted((each for each in everywhere if versions.matches(each, wanted.split(".")[0])), key=versions.key)
        below = [each for each in same if versions.key(each) < versions.key(wanted)][-1:]
        above = [each for each in same if versions.key(each) > versions.key(wanted)][:1]
        if below or above:
            return f"the nearest there is {' or '.join(below + above)}"
    branches = sorted({versions.branch_of(each) for each in everywhere})
    newest = [str(versions.newest(each for each in everywhere if versions.branch_of(each) == branch)) for branch in branches]
    return f"it has {', '.join(newest)}" if newest else "it has no driver with all packages that are wanted"


KINDS = re.compile(r"kernel|dkms|^nvidia-open|^cuda-drivers")  # packages of one kind of kernel module


def pick_alongside(offered: Mapping[str, Sequence[str]], packages: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """The same version for further packages that are there: without their names apt would downgrade none of them.

    Left out: those that the version has not, and those of a kind of kernel module, which the chosen packages may replace.
    """
    wanted = {versions.upstream_of(each) for each in chosen.values() if versions.is_driver(each)}
    fit = {
        each: [version for version in offered.get(each, ()) if versions.upstream_of(version) in wanted]
        for each in packages
        if not KINDS.search(each)
    }
    return {each: best for each, found in fit.items() if (best := versions.newest(found))}


def pick_newest(offered: Mapping[str, Sequence[str]], packages: Sequence[str], floor: str, url: str) -> dict[str, str]:
    """The newest version that all packages have, which must not be below the floor. Raises HostError."""
    absent = [each for each in packages if not offered.get(each)]
    if absent:
        raise HostError(f"{url} has no {', '.join(absent)}: is it the right repository?")
    common = set.intersection(*({versions.upstream_of(version) for version in offered[each]} for each in packages))
    best = versions.newest(common)
    if best is None or not versions.at_least(best, floor):
        raise HostError(
            f"{url} offers {best or 'no common version'}, and nothing from {floor} on: versions below it have known holes"
        )
    return {each: versions.newest(v for v in offered[each] if versions.upstream_of(v) == best) or best for each in packages}
