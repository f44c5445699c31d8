"""Fingerprints of real keys (tests/keys), and what is said of files that are no key."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.openpgp import NotAKey, dearmor, fingerprints

KEYS = Path(__file__).parent / "keys"
ED25519, RSA = "6BC4239288680985C857DE632F4868ABD244DE19", "D6BAB07B2146CB8AE4ADAFF139A461BEAF6FA854"


def key(name: str) -> bytes:
    return (KEYS / name).read_bytes()


@pytest.mark.parametrize(("name", "wanted"), [("ed25519", ED25519), ("rsa", RSA)])
def test_the_fingerprint_of_a_key_armoured_and_binary(name: str, wanted: str) -> None:
    assert fingerprints(key(f"{name}.gpg")) == fingerprints(key(f"{name}.asc")) == (wanted,)
    assert dearmor(key(f"{name}.asc")) == key(f"{name}.gpg") == dearmor(key(f"{name}.gpg"))


def test_gnupg_says_the_same() -> None:
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not installed (Debian: apt-get install gpg)")
    for name, wanted in (("ed25519", ED25519), ("rsa", RSA)):
        said = subprocess.run(
            ["gpg", "--show-keys", "--with-colons", str(KEYS / f"{name}.asc")], capture_output=True, text=True, check=True
        ).stdout
        assert f"fpr:::::::::{wanted}:" in said


def test_armour_as_it_is_met() -> None:
    text = key("ed25519.asc")
    lines = text.splitlines()
    for variant in (
        text.replace(b"\n", b"\r\n"),
        b"\n\n" + text + b"\n\n",
        text.replace(b"\n\n", b"\nVersion: GnuPG v2\nComment: x\n\n", 1),
        b"\n".join(line + b"  " for line in lines),
        b"\n".join(line for line in lines if not line.startswith(b"=")),  # without its checksum
    ):
        assert fingerprints(variant) == (ED25519,)


def test_two_keys_in_a_file_are_both_seen_in_any_form() -> None:
    """Whoever checks for one key must notice a second one beside it: apt would trust both."""
    both = key("ed25519.gpg") + key("rsa.gpg")
    assert fingerprints(both) == (ED25519, RSA)
    armoured = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n" + base64.encodebytes(both) + b"-----END PGP PUBLIC KEY BLOCK-----\n"
    assert fingerprints(armoured) == (ED25519, RSA)
    assert fingerprints(key("ed25519.asc") + key("rsa.asc")) == (ED25519, RSA)
    assert dearmor(key("ed25519.asc") + b"\n" + key("rsa.asc")) == both


NO_KEYS = [
    (b"", "an empty file"), (b" \n", "an empty file"), (b"<!DOCTYPE html><p>", "an HTML page"), (b"\n<HTML>", "an HTML page"),
    (b"404 not found", "something that is no OpenPGP key"), (b"-----BEGIN PGP SIGNATURE-----\n\nxx\n", "something that is no OpenPGP key"),
    (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEaw37", "cut off"),
    (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!!!!\n-----END PGP PUBLIC KEY BLOCK-----\n", "broken armour"),
    (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\xc3\xa4\xc3\xa4\n-----END PGP PUBLIC KEY BLOCK-----\n", "broken armour"),
    (b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n-----END PGP PUBLIC KEY BLOCK-----\n", "no public key"),
    (b"\x99\xff\xff" + b"\x04" * 100, "cut off"), (b"\x99", "cut off"), (b"\xc6", "cut off"), (b"\xb4\x02ab", "no public key"),
    (b"\x98\x01\x05", "version 5"), (b"\x98\x00", r"version \?"), (b"\xc6\xe0", "partial packets"), (b"\x9b\x04", "unknown length"),
    (b"\xc6\xff\x00\x01\x00\x01" + b"\x04" * 65537, "too long"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "said"), NO_KEYS, ids=[said + f" {len(data)}" for data, said in NO_KEYS])
def test_what_is_no_key_is_said_in_words(data: bytes, said: str) -> None:
    with pytest.raises(NotAKey, match=said):
        fingerprints(data)


@pytest.mark.parametrize("name", ["ed25519.gpg", "rsa.asc"])
def test_a_key_that_is_cut_off_never_has_another_fingerprint(name: str) -> None:
    whole = key(name)
    for end in range(len(whole)):
        try:
            assert fingerprints(whole[:end]) in ((ED25519,), (RSA,))
        except NotAKey:
            continue


@given(st.binary(max_size=200).map(lambda data: bytes([*data[:1]] and [data[0] | 0x80]) + data[1:]))
def test_any_bytes_give_fingerprints_or_that_it_is_no_key(data: bytes) -> None:
    try:
        assert all(len(each) == 40 for each in fingerprints(data))
    except NotAKey:
        return
