"""The keys of a folder: every file gives a key or one fault, and no file affects another.

For verification, a bad file costs only its own key. For signing, a bad file is an error: a scheduler that signs with
another key than configured, or with none, is worse than one that does not start.

`Keyring` is for a process that runs for months: it reads files only when something about them changed. A listing of the
folder and a `stat` of every key are cheap enough for every container that is created. *What can't be read does not
verify.* A removed key stops verifying at once, and so does a file that became bad. If the folder itself can't be read,
there is no key at all, the fault says why, and the next call tries again. The old set is never kept: one of its keys
may have been revoked meanwhile. The cost is small, since running containers are not affected and kubelet retries a
refused create.

A file that changes twice within the granularity of timestamps could look unchanged. So files younger than `_SETTLED_NS`
are read at every call, until they are old enough.
"""

from __future__ import annotations

import os
import time
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
from partage_plugins.api.names import KeyId
from partage_plugins.codecs.signature import key_id

K = TypeVar("K")

_NO_KEY: Final = "holds no public key"
_MAKE_ONE: Final = "at least one <key id>.pub; `partage keys new` makes a pair"


@dataclass(frozen=True)
class Loaded(Generic[K]):
    """The valid keys of a folder, and the faults of its other files."""

    keys: Mapping[KeyId, K]
    faults: tuple[KeyRefused, ...] = ()


LoadedKeys = Loaded[Ed25519PublicKey]
LoadedPrivateKeys = Loaded[Ed25519PrivateKey]


@dataclass(frozen=True)
class SigningKey:
    """The key that signs allocations."""

    id: KeyId
    private: Ed25519PrivateKey


def load_public_keys(folder: Path) -> LoadedKeys:
    """Every key that verifies. Never raises: if there are none, `faults` says why."""
    loaded = _loaded(folder, _public_of)
    if loaded.keys or loaded.faults:
        return loaded
    return Loaded(loaded.keys, (KeyRefused(folder, _NO_KEY, allowed=_MAKE_ONE),))


def load_private_keys(folder: Path) -> LoadedPrivateKeys:
    """Every private half, whether it signs or not. Never raises; an empty folder is not a fault."""
    return _loaded(folder, _private_of)


def load_signing_key(folder: Path) -> SigningKey:
    """The key that the marker names; raises `KeyRefused` if the key or the marker is missing or bad."""
    with opened_folder(folder) as opened:
        named = _marked_in(opened)
        private = _private(opened, f"{named}{PRIVATE_SUFFIX}")
    return SigningKey(named, private)


def load_marker(folder: Path) -> KeyId | None:
    """The id of the signing key; None without a marker. Raises `KeyRefused` for a bad marker."""
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


_SETTLED_NS: Final = 2_000_000_000  # the coarsest timestamps of a common file system are two seconds apart
_TRIES: Final = 3  # for a folder that is exchanged while it is read

Facts = tuple[object, ...]


class Keyring:
    """The current public keys of a folder. The folder should be local: `current` blocks on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._facts: Facts | None = None
        self._loaded = LoadedKeys({})

    def current(self) -> LoadedKeys:
        """The keys that verify now; the same object while nothing changed, so faults need to be reported only once."""
        look = _look(self._folder)
        if not look.settled or look.facts != self._facts:
            self._reload(look)
        return self._loaded

    def _reload(self, before: _Look) -> None:
        loaded, after = load_public_keys(self._folder), _look(self._folder)
        for _ in range(_TRIES):
            if after.facts == before.facts:
                break
            before, loaded, after = after, load_public_keys(self._folder), _look(self._folder)
        self._facts = after.facts if before.settled and after.facts == before.facts else None
        if not _alike(loaded, self._loaded):
            self._loaded = loaded


@dataclass(frozen=True)
class _Look:
    facts: Facts | None
    """File metadata that changes whenever a key does; None if it can't be read."""
    settled: bool
    """Whether every later change will be visible."""


def _look(folder: Path) -> _Look:
    now = time.time_ns()
    try:
        with os.scandir(folder) as entries:
            keys = [entry for entry in entries if entry.name.endswith((PUBLIC_SUFFIX, PRIVATE_SUFFIX))]
        keys.sort(key=lambda entry: entry.name)
        statuses = [folder.stat(), *(entry.stat() for entry in keys)]
    except OSError:
        return _Look(None, settled=False)
    newest = max(status.st_ctime_ns for status in statuses)
    names = (entry.name for entry in keys)
    return _Look((*names, *map(_facts, statuses)), settled=newest < now - _SETTLED_NS)


def _facts(status: os.stat_result) -> Facts:
    owner = (status.st_mode, status.st_uid, status.st_gid)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, *owner)


def _alike(one: LoadedKeys, other: LoadedKeys) -> bool:
    """An id is a digest of its key, so equal ids are equal keys."""
    return one.keys.keys() == other.keys.keys() and list(map(str, one.faults)) == list(map(str, other.faults))
