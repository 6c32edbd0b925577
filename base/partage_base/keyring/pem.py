"""Keys as PEM: any bytes give one Ed25519 key or one `KeyRefused`, and no other error. Pure.

It is stricter than other PEM readers: one block and nothing around it. If a second key or a comment were silently
skipped, people would take the wrong key for the one in use.

The usual form of a public key is decoded here. The general reader costs a daemon 1.3 MiB for its lifetime, and is used
only for other forms and other kinds of key.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from partage_base.keyring.errors import KeyRefused

PUBLIC_ALLOWED: Final = "one Ed25519 public key as PEM (SPKI), '-----BEGIN PUBLIC KEY-----', and nothing else"
PRIVATE_ALLOWED: Final = "one Ed25519 private key as PEM (PKCS8, not encrypted), '-----BEGIN PRIVATE KEY-----', alone"

_BLOCK: Final = re.compile(
    rb"\s*-----BEGIN (?P<label>[A-Z0-9 ]{1,40})-----\s[A-Za-z0-9+/=\s]*-----END (?P=label)-----\s*"
)
_BEGIN: Final = re.compile(rb"-----BEGIN (?P<label>[A-Z0-9 ]{1,40})-----")
_USUAL: Final = re.compile(
    rb"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA(?P<raw>[A-Za-z0-9+/]{43}=)\n-----END PUBLIC KEY-----\n?"
)
"""The fixed prefix of the base64 means Ed25519: RFC 8410 allows no other encoding of it."""
_MALFORMED: Final = (ValueError, TypeError, UnsupportedAlgorithm)


def decode_public(pem: bytes, file: Path) -> Ed25519PublicKey:
    """The public key in the content of `file`."""
    _check_block(pem, b"PUBLIC KEY", file, PUBLIC_ALLOWED)
    usual = _usual(pem)
    if usual is not None:
        return usual
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415  heavy and rare

    try:
        key = load_pem_public_key(pem)
    except _MALFORMED:
        raise KeyRefused(file, "is PEM, but the key in it can't be read", allowed=PUBLIC_ALLOWED) from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyRefused(file, f"holds another kind of key, {type(key).__name__}", allowed=PUBLIC_ALLOWED)
    return key


def decode_private(pem: bytes, file: Path) -> Ed25519PrivateKey:
    """The private key in the content of `file`."""
    _check_block(pem, b"PRIVATE KEY", file, PRIVATE_ALLOWED)
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415  not for verifiers

    try:
        key = load_pem_private_key(pem, password=None)
    except _MALFORMED:
        raise KeyRefused(file, "is PEM, but the key in it can't be read", allowed=PRIVATE_ALLOWED) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyRefused(file, f"holds another kind of key, {type(key).__name__}", allowed=PRIVATE_ALLOWED)
    return key


def encode_public(key: Ed25519PublicKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415  not for verifiers

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def encode_private(key: Ed25519PrivateKey) -> bytes:
    """PKCS8, not encrypted: the file's mode protects it."""
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415  not for verifiers
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _usual(pem: bytes) -> Ed25519PublicKey | None:
    match = _USUAL.fullmatch(pem)
    if match is None:
        return None
    raw = base64.b64decode(match["raw"])
    return Ed25519PublicKey.from_public_bytes(raw) if base64.b64encode(raw) == match["raw"] else None


def _check_block(pem: bytes, label: bytes, file: Path, allowed: str) -> None:
    labels = [match["label"] for match in _BEGIN.finditer(pem)]
    if not labels:
        raise KeyRefused(file, "is empty" if not pem.strip() else "is not PEM", allowed=allowed)
    for found in labels:
        if found != label:
            raise KeyRefused(file, f"holds {_in_words(found)}", allowed=allowed)
    if _BLOCK.fullmatch(pem) is None:
        raise KeyRefused(file, "is PEM with more around it, or cut off", allowed=allowed)


def _in_words(label: bytes) -> str:
    if label == b"ENCRYPTED PRIVATE KEY":
        return "an encrypted private key"
    if label.endswith(b"PRIVATE KEY"):
        return f"a private key ({label.decode()})"
    if label == b"PUBLIC KEY":
        return "a public key"
    return f"something else ({label.decode()})"
