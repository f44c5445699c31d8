"""What dnf 4.14 printed on a real host (Debian's dnf, local repositories) -> one sentence."""

from __future__ import annotations

import pytest

from bringup.dnf_output import passed_over, problem
from bringup.index import is_passing, reason

MIRRORS = "Cannot download repomd.xml: Cannot download repodata/repomd.xml: All mirrors were tried"
CASES = {
    "no EPEL": (
        "Error: \n Problem 1: conflicting requests\n  - nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.159.04-1.el9.x86_64",
        "dkms, which builds the module, is in no enabled repository: enable epel and crb on the host, then run again",
    ),
    "another dependency": (
        "Error: \n Problem: conflicting requests\n  - nothing provides gcc needed by dkms-3-1.noarch\n(try to add '--skip-broken')",
        "nothing provides gcc needed by dkms-3-1.noarch",
    ),
    "wrong signature": (
        'GPG key at file:///srv/nvidia.asc (0x8EDBEFA5) is already installed\nThe GPG keys listed for the "nvidia-driver" repository are '
        "already installed but they are not correct for this package.\nCheck that the correct key URLs are configured.. "
        "Failing package is: nvidia-persistenced-3:580.159.04-1.el9.x86_64\nError: GPG check FAILED",
        "nvidia-persistenced-3:580.159.04-1.el9.x86_64 is not signed by the key of its repository: nothing was installed",
    ),
    "locked": (
        "All matches were filtered out by exclude filtering for argument: a-3:580.95.05-1.el9\nError: Unable to find a match: a",
        "a-3:580.95.05-1.el9 is hidden by a version lock or an exclude=",
    ),
    "stream": (
        "All matches were filtered out by modular filtering for argument: a-3:580-1\nError: Unable to find a match: a-3:580-1",
        "a-3:580-1 is hidden by the module streams that are enabled",
    ),
    "old kernel": (
        "No match for argument: kernel-devel-5.14.0-999.el9.x86_64\nError: Unable to find a match: kernel-devel-5.14.0-999.el9.x86_64",
        "which belongs to the running kernel: install the newest kernel (dnf upgrade kernel), reboot, then run again",
    ),
    "missing": (
        "No match for argument: docker-ce\nError: Unable to find a match: docker-ce",
        "no enabled repository has docker-ce",
    ),
    "conflict": (
        "Error: \n Problem: problem with installed package runc-1-1.x86_64\n"
        "  - package containerd.io-1.7-1.x86_64 conflicts with runc provided by runc-1-1.x86_64",
        "package containerd.io-1.7-1.x86_64 conflicts with runc provided by runc-1-1.x86_64",
    ),
    "full disk": (
        "Error: Transaction test error:\n  installing package a needs 9MB more space on the / filesystem\n",
        "installing package a needs 9MB more space on the / filesystem",
    ),
    "dead": (
        "Errors during downloading metadata for repository 'x':\n  - Curl error (7): Couldn't connect to server for http://a/repomd.xml\n"
        f"Error: Failed to download metadata for repo 'x': {MIRRORS}",
        "Curl error (7): Couldn't connect to server for http://a/repomd.xml",
    ),
    "other": ("Updating\nError: something new\nmore", "something new"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_failure_is_one_sentence(name: str) -> None:
    said, wanted = CASES[name]
    assert wanted in problem(said, ("epel", "crb")) and "\n" not in problem(said)


def test_repositories_of_others_that_were_passed_over_are_named() -> None:
    said = "Warning: failed loading '/etc/yum.repos.d/x.repo', skipping.\nIgnoring repositories: broken, old\nComplete!"
    assert passed_over(said) == ["broken", "old", "/etc/yum.repos.d/x.repo"] and passed_over("Complete!") == []


HASH = "5a" * 32
PASSING = [
    ("  - Curl error (7): Couldn't connect to server for http://a/repodata/repomd.xml [Failed to connect to a port 9]", True),
    ("  - Curl error (6): Couldn't resolve host name for http://a/repodata/repomd.xml", True),
    ("  - Curl error (28): Timeout was reached for http://a/repodata/repomd.xml", True),
    ("  - Status code: 503 for http://a/repodata/repomd.xml (IP: 1.2.3.4)", True),
    (f"  - Status code: 404 for http://a/repodata/{HASH}-primary.xml.gz (IP: 1.2.3.4)", True),
    ("  - Status code: 404 for http://a/repodata/repomd.xml (IP: 1.2.3.4)", False),
    ("  - Status code: 403 for http://a/repodata/repomd.xml (IP: 1.2.3.4)", False),
    ("curl: (22) The requested URL returned error: 404", False),
    ("curl: (22) The requested URL returned error: 503", True),
    ("curl: (7) Failed to connect to a port 9 after 0 ms: Couldn't connect to server", True),
    ("metadata already locked by 17", True),
    ("Error: GPG check FAILED", False),
    ("Err:1 http://a/ InRelease\n  404  Not Found [IP: 1.2.3.4 80]", False),
    ("E: Failed to fetch http://a/x  403  Forbidden", False),
]


@pytest.mark.parametrize(("said", "passing"), PASSING)
def test_what_passes_by_itself_is_told_from_what_does_not(said: str, passing: bool) -> None:
    assert is_passing(said) is passing


def test_the_line_that_tells_most() -> None:
    assert reason(CASES["dead"][0]).startswith("Curl error (7)")
