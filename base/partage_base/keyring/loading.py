"""Loads the keys of a folder: every file gives a key or one fault, and no file keeps another out.

For verifying, one bad file costs that key alone. For signing, a bad file is an error: a scheduler that signs with
another key than it was told, or with none, is worse than one that does not start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from partage_base.keyring.errors import KeyRefused
from partage_base.keyring.files import Folder, opened_folder
from partage_base.keyring.layout import MARKER, PRIVATE_SUFFIX, PUBLIC_SUFFIX, check_name, marked
from partage_base.keyring.pem import decode_private, decode_public
from partage_base.keyring.permissions import check_private, check_public
from partage_plugins.codecs.signature import key_id
from partage_plugins.vocabulary.names import KeyId

K = TypeVar("K")

_NO_KEY: Final = "holds no public key"
_MAKE_ONE: Final = "at least one <key id>.pub; `partage keys new` makes a pair"


@dataclass(frozen=True)
class Loaded(Generic[K]):
    """The good keys of a folder, and what is wrong with the rest of it."""

    keys: Mapping[KeyId, K]
    faults: tuple[KeyRefused, ...] = ()


LoadedKeys = Loaded[Ed25519PublicKey]
LoadedPrivateKeys = Loaded[Ed25519PrivateKey]


@dataclass(frozen=True)
class SigningKey:
    """The one key that signs."""

    id: KeyId
    private: Ed25519PrivateKey


def load_public_keys(folder: Path) -> LoadedKeys:
    """Every key that verifies. Never raises: a folder that gives none says why in `faults`."""
    loaded = _loaded(folder, _public_of)
    if loaded.keys or loaded.faults:
        return loaded
    return Loaded(loaded.keys, (KeyRefused(folder, _NO_KEY, allowed=_MAKE_ONE),))


def load_private_keys(folder: Path) -> LoadedPrivateKeys:
    """Every private half, whether it signs or not. Never raises; an empty folder is no fault."""
    return _loaded(folder, _private_of)


def load_signing_key(folder: Path) -> SigningKey:
    """The key that the marker names; raises `KeyRefused` where it, or the marker, is missing or bad."""
    with opened_folder(folder) as opened:
        named = _marked_in(opened)
        private = _private(opened, f"{named}{PRIVATE_SUFFIX}")
    return SigningKey(named, private)


def load_marker(folder: Path) -> KeyId | None:
    """The id of the key that is to sign; None where nothing says so. Raises `KeyRefused` for a bad marker."""
    if not os.path.lexists(folder / MARKER):
        return None
    with opened_folder(folder) as opened:
        return _marked_in(opened)


def _loaded(path: Path, read: Callable[[Folder, str], K | None]) -> Loaded[K]:
    keys: dict[KeyId, K] = {}
    faults: list[KeyRefused] = []
    try:
        with opened_folder(path) as folder:
            for name in folder.names():
                _load_one(folder, name, read, keys, faults)
    except KeyRefused as fault:
        return Loaded(MappingProxyType({}), (fault,))
    return Loaded(MappingProxyType(keys), tuple(faults))


def _load_one(
    folder: Folder, name: str, read: Callable[[Folder, str], K | None], keys: dict[KeyId, K], faults: list[KeyRefused]
) -> None:
    try:
        key = read(folder, name)
    except KeyRefused as fault:
        faults.append(fault)
        return
    if key is not None:
        keys[KeyId(Path(name).stem)] = key


def _public_of(folder: Folder, name: str) -> Ed25519PublicKey | None:
    file = folder.path / name
    if file.suffix == PRIVATE_SUFFIX:
        why = "looks like a private key, and this folder goes to every machine"
        raise KeyRefused(file, why, allowed="public halves (*.pub) only; private ones belong into signing.d")
    if file.suffix != PUBLIC_SUFFIX:
        return None
    key = decode_public(folder.read(name, check_public), file)
    check_name(file, key_id(key))
    return key


def _private_of(folder: Folder, name: str) -> Ed25519PrivateKey | None:
    return _private(folder, name) if name.endswith(PRIVATE_SUFFIX) else None


def _private(folder: Folder, name: str) -> Ed25519PrivateKey:
    file = folder.path / name
    key = decode_private(folder.read(name, check_private), file)
    check_name(file, key_id(key.public_key()))
    return key


def _marked_in(folder: Folder) -> KeyId:
    return marked(folder.path / MARKER, folder.read(MARKER, check_public))
