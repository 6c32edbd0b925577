"""The signature of an allocation: Ed25519 over the raw annotation value, `<key id>:<base64>` (contract 1).

Raw bytes are signed, so no canonical form is needed, and a fixed prefix keeps a signature from being valid in another
context. Keys are plain values here; the key ring decides where they are stored and which may be used.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from partage_plugins.api.names import KeyId
from partage_plugins.errors import SignatureRefused

DOMAIN: Final = b"partage-allocation-v1\n"
_GRAMMAR: Final = re.compile(r"(?P<key>[0-9a-f]{16}):(?P<signature>[A-Za-z0-9+/]{86}==)", re.ASCII)


def key_id(public: Ed25519PublicKey) -> KeyId:
    """The id of a key: the first 16 hex digits of SHA-256 of the raw public key."""
    return KeyId(hashlib.sha256(public.public_bytes_raw()).hexdigest()[:16])


def sign(allocation: str, private: Ed25519PrivateKey) -> str:
    """The signature annotation for an allocation annotation."""
    signature = private.sign(DOMAIN + allocation.encode())
    return f"{_id_of(private)}:{base64.b64encode(signature).decode()}"


@lru_cache(maxsize=1)
def _id_of(private: Ed25519PrivateKey) -> KeyId:
    """The id of the signing key, cached: deriving it costs half as much as a signature."""
    return key_id(private.public_key())


def verify(allocation: str, signature: str, keys: Mapping[KeyId, Ed25519PublicKey]) -> KeyId:
    """Returns which of `keys` made this signature of exactly this text; refuses if none did."""
    named, raw = decode_signature(signature)
    public = keys.get(named)
    if public is None:
        raise SignatureRefused(
            f"allocation: signed with key {named}, which this node does not trust; "
            "was the key rotated before its public half reached /etc/partage/keys.d?"
        )
    try:
        public.verify(raw, DOMAIN + allocation.encode(errors="surrogatepass"))
    except InvalidSignature:
        raise SignatureRefused(
            f"allocation: the signature of key {named} does not match; it was changed after it was signed"
        ) from None
    return named


def decode_signature(text: str) -> tuple[KeyId, bytes]:
    """The key id and the 64 raw bytes of a signature annotation."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise SignatureRefused("allocation: the signature is not '<16 hex digits>:<88 characters of base64>'")
    raw = base64.b64decode(match["signature"])
    if base64.b64encode(raw).decode() != match["signature"]:
        raise SignatureRefused("allocation: the signature is not canonical base64")
    return KeyId(match["key"]), raw
