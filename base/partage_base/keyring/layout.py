"""Folders and file names of keys. Pure.

    <folder>/keys.d/<key id>.pub       the public half: it verifies. Goes to every machine
    <folder>/signing.d/<key id>.key    the private half. Stays with the scheduler
    <folder>/signing.d/signing         the id of the one key that signs

There are two folders so that a copy or mount of the public keys contains no private key: in a cluster `keys.d` is a
ConfigMap and `signing.d` a Secret. A file is named after its key, so every key has exactly one public file, and
removing that file stops it from verifying. The signing key is written down and never guessed from ages: a new key must
not sign before its public half has reached every node. Names that begin with a dot are not keys: Kubernetes keeps its
own links there, and we keep files that are being written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.keyring.errors import KeyRefused
from partage_plugins.api.names import KeyId

DEFAULT_FOLDER: Final = Path("etc/partage")  # below the root
PUBLIC_SUFFIX: Final = ".pub"
PRIVATE_SUFFIX: Final = ".key"
MARKER: Final = "signing"
KEY_ID_IN_WORDS: Final = "a key id: 16 lower-case hex digits"

_KEY_ID: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True)
class KeyFolders:
    """The two folders of a machine."""

    public: Path
    private: Path

    @classmethod
    def below(cls, folder: Path) -> KeyFolders:
        return cls(public=folder / "keys.d", private=folder / "signing.d")

    @classmethod
    def at_root(cls, root: Path) -> KeyFolders:
        """Both at their default place below `root`."""
        return cls.below(root / DEFAULT_FOLDER)

    def public_file(self, key: KeyId) -> Path:
        return self.public / f"{key}{PUBLIC_SUFFIX}"

    def private_file(self, key: KeyId) -> Path:
        return self.private / f"{key}{PRIVATE_SUFFIX}"


def is_key_id(text: str) -> bool:
    """Whether `text` has the form of a key id."""
    return _KEY_ID.fullmatch(text) is not None


def check_name(file: Path, key: KeyId) -> None:
    """Refuses a file that is not named after the key in it."""
    if file.stem != key:
        raise KeyRefused(file, f"holds the key {key}", allowed=f"a file is named after its key: {key}{file.suffix}")


def marked(file: Path, content: bytes) -> KeyId:
    """The id in a marker file, which may end with a newline."""
    text = content.decode(errors="replace").strip()
    if not is_key_id(text):
        raise KeyRefused(file, "does not name a key", allowed=KEY_ID_IN_WORDS)
    return KeyId(text)
