"""The cluster's objects that hold keys, and their content. Pure.

    Secret     partage-signing               ID.key: private halves; signing: the id of the one that signs
    ConfigMap  partage-keys                  ID.pub: public halves; every node gets them
    Secret     partage-extender-authority    NUMBER.crt, NUMBER.key: the CAs of the extender and its caller
    Secret     partage-extender-tls          tls.crt, tls.key, ca.crt: the extender's, and the CAs of its callers
    Secret     partage-kube-scheduler-tls    the same for the kube-scheduler that calls it
    ConfigMap  partage-extender-ca           ca.crt: the CAs' certificates, for everyone

They hold files, with the names that `partage_base.keyring` uses, so that a mount is a folder of keys.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from partage_base.keyring import KeyRefused, encode_public
from partage_base.keyring.layout import MARKER, PRIVATE_SUFFIX, PUBLIC_SUFFIX, check_name, marked
from partage_base.keyring.pem import decode_private, decode_public
from partage_base.kube import Meta
from partage_plugins.api.names import KeyId
from partage_plugins.codecs.signature import key_id

SIGNING: Final = "partage-signing"
KEYS: Final = "partage-keys"
AUTHORITY: Final = "partage-extender-authority"
EXTENDER_TLS: Final = "partage-extender-tls"
CALLER_TLS: Final = "partage-kube-scheduler-tls"
EXTENDER_CA: Final = "partage-extender-ca"
ACCOUNT: Final = "partage-keys"
"""The only service account that may write these."""

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABELS: Final = {
    "app.kubernetes.io/name": ACCOUNT,
    "app.kubernetes.io/component": "keys",
    "app.kubernetes.io/part-of": "partage",
    MANAGED_BY: ACCOUNT,
}
SINCE: Final = "partage.dev/signing-since"
"""Annotation of the Secret: when its key began to sign, in seconds since the epoch."""


class Secret(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    data: Mapping[str, str] | None = None

    def files(self) -> dict[str, bytes]:
        """Raises `KeyRefused` for invalid base64, which the API server does not admit."""
        return {name: _unfolded(self.metadata.name, name, text) for name, text in (self.data or {}).items()}

    @property
    def is_ours(self) -> bool:
        """Whether it was made here; another one is somebody's own choice."""
        return self.metadata.labels.get(MANAGED_BY) == ACCOUNT


class ConfigMap(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    data: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Signing:
    """The content of the Secret `partage-signing`."""

    private: Mapping[KeyId, Ed25519PrivateKey]
    signs: KeyId | None
    """The key that signs; None before there is one."""

    def public_files(self) -> dict[str, str]:
        """The public half of each, as in the ConfigMap."""
        return {public_file(key): encode_public(half.public_key()).decode() for key, half in self.private.items()}

    def waiting(self) -> list[KeyId]:
        return sorted(self.private.keys() - {self.signs})


def signing_of(secret: Secret) -> Signing:
    """Raises `KeyRefused`: with a bad half nothing is changed, since it may be one that is needed."""
    private: dict[KeyId, Ed25519PrivateKey] = {}
    files = secret.files()
    for name, content in files.items():
        if name.endswith(PRIVATE_SUFFIX):
            file = _place(SIGNING, name)
            half = decode_private(content, file)
            check_name(file, key_id(half.public_key()))
            private[key_id(half.public_key())] = half
    signs = marked(_place(SIGNING, MARKER), files[MARKER]) if MARKER in files else None
    if signs is not None and signs not in private:
        why = f"names {signs}, whose private half is not here"
        raise KeyRefused(_place(SIGNING, MARKER), why, allowed="the id of a private key in this Secret")
    return Signing(private, signs)


def public_of(config_map: ConfigMap) -> dict[KeyId, Ed25519PublicKey]:
    """The keys that verify, without invalid ones."""
    keys: dict[KeyId, Ed25519PublicKey] = {}
    for name, text in (config_map.data or {}).items():
        if name.endswith(PUBLIC_SUFFIX):
            with contextlib.suppress(KeyRefused):
                public = decode_public(text.encode(), file := _place(KEYS, name))
                check_name(file, key_id(public))
                keys[key_id(public)] = public
    return keys


def private_file(key: KeyId) -> str:
    return f"{key}{PRIVATE_SUFFIX}"


def public_file(key: KeyId) -> str:
    return f"{key}{PUBLIC_SUFFIX}"


def folded(files: Mapping[str, bytes | None]) -> dict[str, str | None]:
    """A Secret's `data`; None removes a file."""
    return {name: None if content is None else base64.b64encode(content).decode() for name, content in files.items()}


def _unfolded(secret: str, name: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise KeyRefused(_place(secret, name), "is no base64", allowed="what the API server would write") from None


def _place(secret: str, name: str) -> Path:
    return Path("Secret") / secret / name
