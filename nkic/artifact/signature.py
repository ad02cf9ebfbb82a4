"""Signatures: whoever holds a key vouches for a file, and a runner can insist on it.

A signature is a section of its own that readers need not know: the signer's public key, then an
Ed25519 signature (RFC 8032) of the header without that section's entry. The header has the hashes
of all other sections. Ed25519 is deterministic: the same file and key give the same bytes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from nkic.artifact import container
from nkic.artifact.container import VERSION, Container, SectionEntry, encode
from nkic.artifact.encode import section_entry
from nkic.artifact.format import LIMITS, refuse
from nkic.base import files
from nkic.base.diagnostics import bad_value, need

SECTION = "signature"
KEY_BYTES, SIGNATURE_BYTES = 32, 64
MAX_KEY_FILE = 1 << 16
_MAKE = {
    True: ("private", "openssl genpkey -algorithm ed25519 -out key.pem"),
    False: ("public", "openssl pkey -in key.pem -pubout -out public.pem"),
}
_PACKAGE = "signatures need", "cryptography"
_DOMAIN = b"nkix-signature-1\0"


def private_key(path: str) -> Any:
    """Read a private key. Raises `UsageFailed` if it cannot be used."""
    need(*_PACKAGE)
    return _key(path, private=True)


def sign(data: bytes, key: Any) -> bytes:
    """Return the file with a signature by this private key, its only one."""
    file = container.unpack(data)
    container.check_version(file.header)
    content = key.public_key().public_bytes_raw() + key.sign(_message(file))
    sections = {n: s.data for n, s in file.sections.items() if n != SECTION}
    entries = (*_others(file), section_entry(SECTION, content))
    head = file.header._replace(sections=entries)
    return container.pack(head, {**sections, SECTION: memoryview(content)}, LIMITS)


def require(data: bytes, key_path: str) -> None:
    """Raise `ArtifactFailed` unless the public key in `key_path` verifies the file's signature."""
    need(*_PACKAGE)
    from cryptography.exceptions import InvalidSignature

    key = _key(key_path, private=False)
    file = container.unpack(data)
    if file.header.fmt > VERSION:
        refuse("not-signed", "a newer format: what its signature covers is not known here")
    signed_by = signer(file)
    if signed_by is None:
        refuse("not-signed", "the file has no signature")
    if signed_by != key.public_bytes_raw().hex():
        refuse("not-signed", f"the file is signed with another key: {signed_by}")
    try:
        key.verify(bytes(file.sections[SECTION].data[KEY_BYTES:]), _message(file))
    except InvalidSignature:
        refuse("not-signed", "the file is not the one that was signed", SECTION)


def signer(file: Container) -> str | None:
    """Return the key by which the file claims to be signed, in hex; None without a signature."""
    section = file.sections.get(SECTION)
    if section is None or len(section.data) != KEY_BYTES + SIGNATURE_BYTES:
        return None
    return bytes(section.data[:KEY_BYTES]).hex()


def _message(file: Container) -> bytes:
    return _DOMAIN + encode(file.header._replace(sections=_others(file)))


def _others(file: Container) -> tuple[SectionEntry, ...]:
    return tuple(entry for entry in file.header.sections if entry.name != SECTION)


def _key(path: str, private: bool) -> Any:
    """Return an Ed25519 key from a PEM file, or from one of OpenSSH."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    kind = ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey
    data = files.read_regular(path, MAX_KEY_FILE)
    key: Any = None
    with suppress(ValueError, UnsupportedAlgorithm):
        try:
            if private and b"OPENSSH PRIVATE" in data:
                key = serialization.load_ssh_private_key(data, None)
            elif private:
                key = serialization.load_pem_private_key(data, None)
            elif data.startswith(b"ssh-"):
                key = serialization.load_ssh_public_key(data)
            else:
                key = serialization.load_pem_public_key(data)
        except TypeError:
            text = f"{path}: the key is protected by a password"
            raise bad_value(text, "take a key without one") from None
    if not isinstance(key, kind):
        which, advice = _MAKE[private]
        raise bad_value(f"{path}: this is not a {which} key of Ed25519", f"make one: {advice}")
    return key
