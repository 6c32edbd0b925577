"""An overview of a machine's keys, for people: their uses, their files, and all faults."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring.errors import KeyRefused
from partage_base.keyring.keys import LoadedPrivateKeys, load_marker, load_private_keys, load_public_keys
from partage_base.keyring.layout import MARKER, KeyFolders
from partage_plugins.api.names import KeyId


class Use(enum.Enum):
    """What a key is used for on this machine."""

    SIGNING = "signing"
    WAITING = "waiting"
    """It could sign, but another key does."""
    VERIFY_ONLY = "verify only"


@dataclass(frozen=True)
class KeyEntry:
    """One key and its files."""

    id: KeyId
    use: Use
    public: Path | None
    private: Path | None
    since: float | None
    """Seconds since the epoch: the older modification time of its existing files."""


@dataclass(frozen=True)
class Overview:
    """The valid keys, oldest first, and the faults of both folders."""

    entries: tuple[KeyEntry, ...]
    faults: tuple[KeyRefused, ...]

    @property
    def signing(self) -> KeyId | None:
        return next((entry.id for entry in self.entries if entry.use is Use.SIGNING), None)


def overview(folders: KeyFolders) -> Overview:
    """Reads everything; never raises for the content of the folders."""
    public = load_public_keys(folders.public)
    private, signs, faults = _private_side(folders.private)
    entries = [
        _entry(
            key,
            _use(key, private, signs),
            public=folders.public_file(key) if key in public.keys else None,
            private=folders.private_file(key) if key in private else None,
        )
        for key in public.keys.keys() | private.keys()
    ]
    entries.sort(key=lambda entry: (entry.since or 0.0, entry.id))
    return Overview(tuple(entries), public.faults + faults)


def _private_side(
    folder: Path,
) -> tuple[Mapping[KeyId, Ed25519PrivateKey], KeyId | None, tuple[KeyRefused, ...]]:
    """Private keys, signing id and faults; most machines have no such folder, which is not a fault."""
    if not os.path.lexists(folder):
        return {}, None, ()
    loaded = load_private_keys(folder)
    try:
        signs = load_marker(folder)
    except KeyRefused as fault:
        known = {str(each) for each in loaded.faults}
        return loaded.keys, None, loaded.faults if str(fault) in known else (*loaded.faults, fault)
    return loaded.keys, signs, (*loaded.faults, *_marker_faults(folder / MARKER, loaded, signs))


def _marker_faults(marker: Path, loaded: LoadedPrivateKeys, signs: KeyId | None) -> Iterator[KeyRefused]:
    if signs is None and loaded.keys:
        yield KeyRefused(marker, "is missing, so none of the private keys here signs", allowed="the id of one of them")
    elif signs is not None and signs not in loaded.keys:
        why = f"names {signs}, whose private half is not here or is bad"
        yield KeyRefused(marker, why, allowed="the id of a good private key in this folder")


def _use(key: KeyId, private: Mapping[KeyId, Ed25519PrivateKey], signs: KeyId | None) -> Use:
    if key not in private:
        return Use.VERIFY_ONLY
    return Use.SIGNING if key == signs else Use.WAITING


def _entry(key: KeyId, use: Use, *, public: Path | None, private: Path | None) -> KeyEntry:
    return KeyEntry(key, use, public, private, since=_since((public, private)))


def _since(files: Iterable[Path | None]) -> float | None:
    written: list[float] = []
    for file in files:
        with suppress(OSError):
            written += [file.stat().st_mtime] if file is not None else []
    return min(written, default=None)
