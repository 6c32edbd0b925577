"""Any text is either a signature with one spelling or raises SignatureRefused, and only signed texts verify.

The input is a text to verify and, after its last line break, its signature.
"""

from __future__ import annotations

import base64

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.codecs import decode_signature, key_id, sign, verify
from partage_plugins.errors import SignatureRefused
from unit.codecs import documents

_PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
_KEYS = {key_id(_PRIVATE.public_key()): _PRIVATE.public_key()}
_TEXT = documents.text_of(documents.allocation())
_SIGNED = f"{_TEXT}\n{sign(_TEXT, _PRIVATE)}".encode()
_STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32))

SEEDS = (
    _SIGNED,
    f"x\n{sign('x', _STRANGER)}".encode(),
    _SIGNED.replace(b"==", b""),
    b"\n" + next(iter(_KEYS)).encode() + b":" + b"A" * 86 + b"==",
)
DICTIONARY = (next(iter(_KEYS)).encode(), b":", b"==", b"=", b"\n", b"A" * 86)


def target(data: bytes) -> str:
    """Verifies, and checks accepted texts against everything that was ever signed."""
    text, _, signature = data.decode(errors="surrogateescape").rpartition("\n")
    try:
        named, raw = decode_signature(signature)
    except SignatureRefused as refusal:
        return _short(refusal)
    if f"{named}:{base64.b64encode(raw).decode()}" != signature:
        raise AssertionError(f"{signature!r} has a second spelling")
    try:
        verify(text, signature, _KEYS)
    except SignatureRefused as refusal:
        return _short(refusal)
    if data != _SIGNED:
        raise AssertionError(f"{text!r} was believed with {signature!r}, and nobody signed it")
    return "verified"


def _short(refusal: SignatureRefused) -> str:
    said = str(refusal)
    if len(said) >= 600 or not said.isprintable():
        raise AssertionError(f"an error that is no short, printable line: {said!r}")
    return said[:27]
