"""Keys and folders that tests share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyFolders, add_pair
from partage_base.keyring.pem import encode_private, encode_public
from partage_plugins.api.names import KeyId
from partage_plugins.codecs import key_id

STRANGER: Final = 54321

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="to root every folder opens")


def new_pair(folders: KeyFolders) -> KeyId:
    return add_pair(folders, Ed25519PrivateKey.generate()).id


def write_public(folder: Path, key: Ed25519PrivateKey | None = None) -> Path:
    """A valid public file, as if copied there by a person."""
    public = (key or Ed25519PrivateKey.generate()).public_key()
    return write(folder / f"{key_id(public)}.pub", encode_public(public), 0o644)


def write_private(folder: Path, key: Ed25519PrivateKey | None = None) -> Path:
    """A valid private file."""
    private = key or Ed25519PrivateKey.generate()
    return write(folder / f"{key_id(private.public_key())}.key", encode_private(private), 0o600)


def write(file: Path, content: bytes, mode: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(mode)
    return file


def files_below(folder: Path) -> list[str]:
    """All files, including hidden ones."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir())
