"""Fingerprints of OpenPGP public keys, so that a host needs no gpg to have its repository keys checked.

RFC 4880 (section 6.2 armour, 4.2 packet headers, 12.2 fingerprints), version 4 keys: what apt and rpm repositories sign with.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

PUBLIC_KEY = 6  # packet tag; sub-keys have 14
BEGIN, END = b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"-----END PGP PUBLIC KEY BLOCK-----"


class NotAKey(ValueError):
    """The bytes are no OpenPGP public key; the text says what they look like instead."""


def dearmor(data: bytes) -> bytes:
    """Binary packets from an ASCII-armoured or already binary key; of several armoured blocks all, since apt trusts all. Raises NotAKey."""
    text = data.lstrip()
    if not text.startswith(BEGIN):
        if data and data[0] & 0x80:
            return data
        raise NotAKey(_looks_like(data))
    packets = b""
    for block in text.split(BEGIN)[1:]:
        lines = [each.strip() for each in block.splitlines()]
        if END not in lines:
            raise NotAKey("a key that is cut off")
        body = lines[1 : lines.index(END)]  # the first is the rest of the line of BEGIN
        if b"" in body:  # headers end with an empty line
            body = body[body.index(b"") + 1 :]
        try:
            packets += base64.b64decode(b"".join(each for each in body if not each.startswith(b"=")), validate=True)
        except binascii.Error as error:
            raise NotAKey(f"a key with a broken armour ({error})") from None
    return packets


def armor(packets: bytes) -> bytes:
    """The packets as ASCII armour with its checksum, which older versions of rpm insist on."""
    crc = 0xB704CE  # RFC 4880 section 6.1
    for byte in packets:
        crc ^= byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    body = base64.b64encode(packets)
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return b"\n".join([BEGIN, b"", *lines, b"=" + base64.b64encode(crc.to_bytes(3, "big")), END, b""])


def fingerprints(data: bytes) -> tuple[str, ...]:
    """The fingerprints of all primary keys in a keyring, 40 upper-case hex digits each. Raises NotAKey."""
    packets = dearmor(data)
    found: list[str] = []
    at = 0
    while at < len(packets):
        try:
            tag, start, length = _header(packets, at)
        except IndexError:
            raise NotAKey("a key that is cut off") from None
        body = packets[start : start + length]
        if len(body) < length:
            raise NotAKey("a key that is cut off")
        if tag == PUBLIC_KEY:
            if not body or body[0] != 4:
                raise NotAKey(f"a key of version {body[0] if body else '?'}: only version 4 is known here")
            if length > 0xFFFF:  # of which the fingerprint has no room for the length
                raise NotAKey("a key that is too long")
            found.append(hashlib.sha1(b"\x99" + length.to_bytes(2, "big") + body).hexdigest().upper())  # noqa: S324 (RFC 4880 §12.2)
        at = start + length
    if not found:
        raise NotAKey("no public key")
    return tuple(found)


def _header(packets: bytes, at: int) -> tuple[int, int, int]:
    """(tag, start of the body, its length) of the packet at `at`."""
    first = packets[at]
    if not first & 0x80:
        raise NotAKey(_looks_like(packets))
    if first & 0x40:  # new format
        length = packets[at + 1]
        if length < 192:
            return first & 0x3F, at + 2, length
        if length < 224:
            return first & 0x3F, at + 3, ((length - 192) << 8) + packets[at + 2] + 192
        if length == 255:
            return first & 0x3F, at + 6, int.from_bytes(packets[at + 2 : at + 6], "big")
        raise NotAKey("a key in partial packets")
    size = {0: 1, 1: 2, 2: 4}.get(first & 3)
    if size is None:
        raise NotAKey("a key with a packet of unknown length")
    packets[at + size]  # raises IndexError when cut off
    return (first >> 2) & 0x0F, at + 1 + size, int.from_bytes(packets[at + 1 : at + 1 + size], "big")


def _looks_like(data: bytes) -> str:
    start = data.lstrip()[:200].lower()
    if not start:
        return "an empty file"
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "an HTML page"
    return "something that is no OpenPGP key"
