"""Copies the cluster's public keys and settings from mounted ConfigMaps to the host's /etc.

The ConfigMap is the only authority for the host's keys: new ones are written first, then those that it no longer has
are removed. If it has no valid key nothing changes, so a host that had a key is never without one. A key that is
damaged only in the ConfigMap stays on the host.

Settings are written only if the host has none, or has those that were written here: a file that a person wrote wins.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.files import clear_unfinished, write_whole
from partage_base.keyring import KeyFolders, encode_public, load_public_keys
from partage_plugins.errors import PartageError

KEYS_SUFFIX: Final = ".pub"
SETTINGS_FILE: Final = "partage.toml"
OURS: Final = b"# Written by partage-installer from the ConfigMap partage-node; change it there.\n"
MOST_SETTINGS_BYTES: Final = 256 << 10
_FOR_ALL: Final = 0o644


Wrote = Callable[[str], None]
"""Called for each change of the host, as `wrote /etc/…, which was missing`."""


class NoKeys(PartageError):
    """The ConfigMap has no key that a host could trust."""


class TooMuch(PartageError):
    """The settings are larger than the limit."""


def deliver_keys(source: Path, host: Path, wrote: Wrote) -> None:
    """Replaces the host's keys by those of the folder `source`; raises `NoKeys` or `OSError`."""
    loaded = load_public_keys(source)
    if not loaded.keys:
        raise NoKeys(f"there is no key for hosts to trust: {loaded.faults[0]}; see the ConfigMap partage-keys")
    folders = KeyFolders.at_root(host)
    folder = folders.public
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    clear_unfinished(folder)
    for key, public in loaded.keys.items():
        path, content = folders.public_file(key), encode_public(public)
        if not _holds(path, content):
            _write(host, path, content, wrote)
    kept = {path.name for path in source.glob(f"*{KEYS_SUFFIX}")}
    for path in folder.glob(f"*{KEYS_SUFFIX}"):
        if path.name not in kept:
            path.unlink()
            wrote(f"removed /{path.relative_to(host)}, which the cluster has no more")


def deliver_settings(source: Path, host: Path, wrote: Wrote) -> str | None:
    """Writes the host's settings, or returns why a person's file stays; raises `TooMuch` or `OSError`."""
    path = host / "etc/partage" / SETTINGS_FILE
    try:
        with (source / SETTINGS_FILE).open("rb") as file:
            content = file.read(MOST_SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(content) > MOST_SETTINGS_BYTES:
        raise TooMuch(f"{source / SETTINGS_FILE} has over {MOST_SETTINGS_BYTES} bytes; see the ConfigMap partage-node")
    stands = path.read_bytes() if path.exists() else OURS
    if not stands.startswith(OURS):
        return f"/etc/partage/{SETTINGS_FILE} of the host was written by a person and stays"
    if stands != OURS + content:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _write(host, path, OURS + content, wrote)
    return None


def take_back(host: Path) -> None:
    """Removes what was delivered, and the folders if they are empty then; raises `OSError`."""
    folder = KeyFolders.at_root(host).public
    for path in folder.glob(f"*{KEYS_SUFFIX}"):
        path.unlink()
    settings = folder.parent / SETTINGS_FILE
    if settings.exists() and settings.read_bytes().startswith(OURS):
        settings.unlink()
    for each in (folder, folder.parent):
        if each.is_dir() and not any(each.iterdir()):
            each.rmdir()


def _write(host: Path, path: Path, content: bytes, wrote: Wrote) -> None:
    was = "other than the cluster has it" if path.exists() else "missing"
    write_whole(path, content, mode=_FOR_ALL, synced=True)
    wrote(f"wrote /{path.relative_to(host)}, which was {was}")


def _holds(path: Path, content: bytes) -> bool:
    try:
        return not path.is_symlink() and path.read_bytes() == content
    except OSError:
        return False
