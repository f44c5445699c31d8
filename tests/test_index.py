"""From what a repository offers to versions, or to one sentence that says what it has instead."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from bringup.errors import HostError
from bringup.index import checked_index, checked_key, is_passing, pick, pick_alongside, pick_newest, reason
from bringup.target import Repository

KEYS = Path(__file__).parent / "keys"
FINGERPRINT = "6BC4239288680985C857DE632F4868ABD244DE19"
REPOSITORY = Repository("nvidia-driver", "https://a/", "https://a/key.pub", FINGERPRINT, "/usr/share/keyrings/k.gpg")
URL = "https://a/"
SET = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced")


def offered(**versions: str) -> dict[str, list[str]]:
    """`all="580.1 580.2"`, and what differs for one package: `dkms="…"`."""
    return {name: versions.get(name.split("-")[-1], versions["all"]).split() for name in SET}


PICKS = [
    ("the newest of the branch", offered(all="595.71.05-1 580.159.04-1 580.95.05-1"), "580", "580.159.04-1"),
    ("an exact version", offered(all="580.159.04-1 580.95.05-1"), "580.95.05", "580.95.05-1"),
    ("the newest that all have", offered(all="580.178.04-1 580.159.04-1", dkms="580.159.04-1"), "580", "580.159.04-1"),
    ("numbers, not text", offered(all="580.95.05-1 580.105.08-1"), "580", "580.105.08-1"),
    ("the last rebuild of it", offered(all="580.159.04-2 580.159.04-10"), "580", "580.159.04-10"),
]


@pytest.mark.parametrize(("versions", "wanted", "picked"), [each[1:] for each in PICKS], ids=[each[0] for each in PICKS])
def test_picks(versions: dict[str, list[str]], wanted: str, picked: str) -> None:
    assert pick(versions, SET, wanted, URL) == dict.fromkeys(SET, picked)


def test_an_expired_key_is_named_rather_than_that_nothing_is_signed() -> None:
    said = "W: GPG error: https://a InRelease: The following signatures were invalid: EXPKEYSIG 7D0F\nE: The repository is not signed."
    assert reason(said) == "GPG error: https://a InRelease: The following signatures were invalid: EXPKEYSIG 7D0F"


SIGNATURES = {  # what gpgv, sqv 1.3 and rpm print
    "expired, gpgv": ("W: GPG error: https://a InRelease: The following signatures were invalid: EXPKEYSIG 7D0F", "has expired"),
    "expired, sqv": (
        "W: OpenPGP signature verification failed: https://a InRelease: Sub-process /usr/bin/sqv returned an error code (1), "
        "error message is: Signing key on 7D0F is not bound:            No binding signature at time 2026-11-30T22:39:02Z",
        "has expired",
    ),
    "expired since, sqv": (
        "Err:1 https://a InRelease\n  Signing key on 7D0F is bad:  The primary key is not live   because: Expired on 2025-02-01T00:00:00Z",
        "has expired",
    ),
    "SHA-1, sqv": (
        "W: OpenPGP signature verification failed: https://a InRelease: Signing key on 7D0F is not bound: No binding signature at time "
        "2026-12-01T02:26:01Z   because: SHA1 is not considered secure since 2026-02-01T00:00:00Z",
        "SHA-1",
    ),
    "another key, gpgv": ("W: GPG error: https://a InRelease: NO_PUBKEY 23B009152283439D", "another key than"),
    "another key, sqv": ("W: x: Sub-process sqv: Missing key B0D5B7E1, which is needed to verify signature.", "another key than"),
    "changed, gpgv": ("W: GPG error: https://a InRelease: The following signatures were invalid: BADSIG 7D0F", "does not fit"),
    "changed, sqv": ("W: x: Sub-process sqv: Verifying signature:    Message has been manipulated", "does not fit"),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_each_way_in_which_a_signature_does_not_hold_has_its_sentence(name: str) -> None:
    said, sentence = SIGNATURES[name]
    with pytest.raises(HostError) as caught:
        checked_index(REPOSITORY, said)
    text = str(caught.value)
    assert text.startswith("the repository https://a/ cannot be used: its ") or "it is signed by another key" in text
    assert sentence in text and FINGERPRINT in text and "nothing was changed" in text and "\n" not in text
    assert not is_passing(f"{said}\nErr: Connection failed")


def test_what_is_no_matter_of_signatures_keeps_its_own_words() -> None:
    with pytest.raises(HostError, match=r"cannot be used \(Could not resolve a\): nothing was changed"):
        checked_index(REPOSITORY, "E: Could not resolve a")


def test_libraries_that_are_there_get_the_version_that_was_picked() -> None:
    offers = {
        "libcuda1": ["620.70.06-1", "580.178.04-1"],
        "libnvidia-old1": ["580.178.04-1"],
        "nvidia-kernel-dkms": ["620.70.06-1"],
        "nvidia-open": ["620.70.06-1"],
    }
    chosen = {"nvidia-driver-cuda": "620.70.06-1"}
    assert pick_alongside(offers, (*offers, "libnvidia-gone1"), chosen) == {"libcuda1": "620.70.06-1"}


def test_packages_of_one_version_may_have_each_its_own_revision() -> None:
    assert pick(offered(all="580.159.04-1", persistenced="580.159.04-3 1:580.95.05-1"), SET, "580", URL) == {
        "nvidia-driver-cuda": "580.159.04-1", "nvidia-kernel-open-dkms": "580.159.04-1", "nvidia-persistenced": "580.159.04-3",
    }  # fmt: skip


NO_PICKS = [
    (offered(all="595.71.05-1 620.70.06-1"), "580", "https://a/ has no driver 580: it has 595.71.05, 620.70.06"),
    (
        offered(all="580.65.06-1 580.95.05-1 580.159.04-1 580.178.04-1"),
        "580.105.01",
        "the nearest there is 580.95.05 or 580.159.04",
    ),
    (offered(all="580.159.04-1 580.178.04-1"), "580.999.99", "has no driver 580.999.99: the nearest there is 580.178.04"),
    (offered(all="580.159.04-1 580.178.04-1 620.70.06-1"), "595.71.05", "has no driver 595.71.05: it has 580.178.04, 620.70.06"),
    (
        offered(all="580.159.04-1", dkms="580.95.05-1"),
        "580",
        "has no driver 580: its packages are not of one version there (nvidia-driver-cuda 580.159.04, nvidia-kernel-open-dkms 580.95.05, ",
    ),
    (
        offered(all="580.159.04-1", dkms="620.70.06-1"),
        "595",
        "has no driver 595: it has no driver with all packages that are wanted",
    ),
    (offered(all="580.159.04-1", dkms=""), "580", "has no nvidia-kernel-open-dkms: is it the right repository"),
    ({}, "580", f"has no {', '.join(SET)}"),
]


@pytest.mark.parametrize(("versions", "wanted", "said"), NO_PICKS)
def test_what_cannot_be_picked_is_said_with_what_there_is(versions: dict[str, list[str]], wanted: str, said: str) -> None:
    with pytest.raises(HostError) as error:
        pick(versions, SET, wanted, URL)
    assert said in str(error.value)


def test_the_newest_toolkit_that_all_its_packages_have_and_never_one_below_the_floor() -> None:
    two = ("base", "tools")
    assert pick_newest({"base": ["1.21.0-1", "1.20.0-1"], "tools": ["1.20.0-1"]}, two, "1.17.8", URL) == dict.fromkeys(
        two, "1.20.0-1"
    )
    for versions, said in (
        ({"base": ["1.9.0-1"], "tools": ["1.9.0-1"]}, "offers 1.9.0, and nothing from 1.17.8 on"),
        ({"base": ["1.20.0-1"], "tools": ["1.19.0-1"]}, "offers no common version"),
        ({"base": ["1.20.0-1"]}, "has no tools"),
    ):
        with pytest.raises(HostError, match=said):
            pick_newest(versions, two, "1.17.8", URL)


def b64(name: str) -> str:
    return base64.b64encode((KEYS / name).read_bytes()).decode()


def test_the_right_key_comes_back_as_packets_whatever_its_form() -> None:
    assert checked_key(REPOSITORY, b64("ed25519.asc"), None) == checked_key(REPOSITORY, b64("ed25519.gpg"), None)


BAD_KEYS = [
    (
        b64("rsa.asc"),
        None,
        "has the fingerprint D6BAB07B2146CB8AE4ADAFF139A461BEAF6FA854, not 6BC4239288680985C857DE632F4868ABD244DE19",
    ),
    (base64.b64encode((KEYS / "ed25519.asc").read_bytes() + (KEYS / "rsa.asc").read_bytes()).decode(), None, "D6BAB07B2146"),
    (base64.b64encode(b"<html>please log in</html>").decode(), None, "https://a/key.pub is an HTML page, not the key 6BC4"),
    (base64.b64encode(b"").decode(), None, "is an empty file, not the key"),
    (None, "Err:1 https://a/key.pub\n  404  Not Found", "could not be had (Err:1 https://a/key.pub): is the address right"),
    (None, None, "could not be had (no reason was given)"),
]


@pytest.mark.parametrize(("key", "problem", "said"), BAD_KEYS)
def test_a_key_that_is_not_the_one_we_know_is_never_used(key: str | None, problem: str | None, said: str) -> None:
    with pytest.raises(HostError) as error:
        checked_key(REPOSITORY, key, problem)
    assert said in str(error.value)


def test_an_index_with_a_problem_is_never_used() -> None:
    checked_index(REPOSITORY, None)
    with pytest.raises(HostError, match=r"https://a/ cannot be used \(The repository is not signed\.\): nothing was changed"):
        checked_index(REPOSITORY, "Reading...\nW: something\nE: The repository is not signed.")
    with pytest.raises(HostError, match="no reason was given"):
        checked_index(REPOSITORY, "")


REASONS = [
    ("Get:1 x\nErr:2 http://a y\n  404\nE: Failed to fetch\nE: other", "Failed to fetch"),
    ("W: GPG error: x NO_PUBKEY\nThe end", "GPG error: x NO_PUBKEY"),
    ("one\n\n  two  \n\n", "two"),
    (None, "no reason was given"),
    ("E: " + "x" * 999, "x" * 300),
]


@pytest.mark.parametrize(("said", "wanted"), REASONS)
def test_the_line_of_apts_output_that_tells_most(said: str | None, wanted: str) -> None:
    assert reason(said)[:300] == wanted
