"""Changes the keys of a machine: adds a pair, or retires a signing key.

Every step leaves a valid state, so a change that is killed is repaired by repeating it. The order of steps follows from
their risk: a key is on disk before anything names it, and the marker moves on before the key that it named is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring.errors import KeyKept, KeyUnknown
from partage_base.keyring.files import create, locked, make_folder, remove, replace
from partage_base.keyring.keys import load_marker, load_private_keys, load_public_keys
from partage_base.keyring.layout import MARKER, KeyFolders
from partage_base.keyring.pem import encode_private, encode_public
from partage_plugins.api.names import KeyId
from partage_plugins.codecs.signature import key_id

PRIVATE_MODE: Final = 0o600
PUBLIC_MODE: Final = 0o644


@dataclass(frozen=True)
class Added:
    """A new key pair and its files."""

    id: KeyId
    private: Path
    public: Path
    signs: KeyId
    """The key that signs now: this one, or the former one."""


@dataclass(frozen=True)
class Retired:
    """A key whose private half was removed."""

    id: KeyId
    public: Path
    signs: KeyId | None
    """The key that signs now, if any."""


def add_pair(folders: KeyFolders, private: Ed25519PrivateKey) -> Added:
    """Writes both halves. The new key signs at once only if no key did; else it waits until that one is retired."""
    public = private.public_key()
    added = key_id(public)
    make_folder(folders.public, 0o755)
    make_folder(folders.private, 0o700)
    with locked(folders.private, folders.public), ExitStack() as undo:
        signs = load_marker(folders.private)
        _created(undo, folders.private_file(added), encode_private(private), PRIVATE_MODE)
        _created(undo, folders.public_file(added), encode_public(public), PUBLIC_MODE)
        if signs is None:
            undo.callback(_mark, folders, None)
            _mark(folders, added)
        undo.pop_all()
    return Added(added, folders.private_file(added), folders.public_file(added), signs or added)


def retire(folders: KeyFolders, key: KeyId, *, force: bool = False) -> Retired:
    """Removes the private half of a key; its public half stays, or is written if it was missing.

    If it was the signing key, the other private half takes over. Without another one this needs `force`, and then
    nothing signs any more; with several others, all but one of them must be retired first.
    """
    if not folders.private.is_dir():
        raise KeyUnknown(f"{folders.private} does not exist, so this machine signs with no key")
    with locked(folders.private, folders.public):
        private = load_private_keys(folders.private).keys
        if key not in private:
            raise KeyUnknown(f"{folders.private} holds no good private half of {key}; it has: {_listed(private)}")
        signs = load_marker(folders.private)
        if signs == key:
            signs = _successor(key, sorted(private.keys() - {key}), force=force)
        _keep_public_half(folders, private[key])
        _mark(folders, signs)
        remove(folders.private_file(key))
    return Retired(key, folders.public_file(key), signs)


def _successor(key: KeyId, others: list[KeyId], *, force: bool) -> KeyId | None:
    if len(others) > 1:
        raise KeyKept(
            f"{key} signs and {len(others)} keys could take over; retire all but one of {_listed(others)} first"
        )
    if not others and not force:
        raise KeyKept(f"{key} is the only key that can sign; make another first (`partage keys new`), or use --force")
    return others[0] if others else None


def _keep_public_half(folders: KeyFolders, private: Ed25519PrivateKey) -> None:
    """Ensures that the key's public half exists: what it signed must still verify."""
    public = private.public_key()
    key = key_id(public)
    if key not in load_public_keys(folders.public).keys:
        make_folder(folders.public, 0o755)
        create(folders.public_file(key), encode_public(public), PUBLIC_MODE)


def _mark(folders: KeyFolders, key: KeyId | None) -> None:
    if key is None:
        remove(folders.private / MARKER)
    else:
        replace(folders.private / MARKER, f"{key}\n".encode(), PUBLIC_MODE)


def _created(undo: ExitStack, file: Path, content: bytes, mode: int) -> None:
    create(file, content, mode)
    undo.callback(remove, file)


def _listed(keys: Iterable[KeyId]) -> str:
    return ", ".join(sorted(keys)) or "none"
