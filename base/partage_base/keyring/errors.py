"""Expected errors of keys, as one tree.

    PartageError
    └── KeyringError
        ├── KeyRefused     a file or folder gives no key: which one, why, and what is allowed
        ├── KeyUnknown     no key has that id, or the id is ambiguous
        └── KeyKept        a change was not made, since it would lose a key that is still needed

The class tells a caller what to do: leave the key out and report it, ask again, or do something else first.
"""

from __future__ import annotations

from pathlib import Path

from partage_plugins.errors import PartageError
from partage_plugins.text import printable


class KeyringError(PartageError):
    """Base of all expected errors of keys."""


class KeyRefused(KeyringError):
    """A file or folder gives no key."""

    def __init__(self, file: Path, why: str, *, allowed: str) -> None:
        """`why` completes "this file …", `allowed` says what should be there instead."""
        super().__init__(file, why, allowed)
        self.file, self.why, self.allowed = file, why, allowed

    def __str__(self) -> str:
        return f"{printable(str(self.file))}: {self.why}; allowed: {self.allowed}"


class KeyUnknown(KeyringError):
    """No key has that id, or it is ambiguous."""


class KeyKept(KeyringError):
    """A change was not made: it would lose a key that is still needed."""
