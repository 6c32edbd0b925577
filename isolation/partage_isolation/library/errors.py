"""What is expected to go wrong with the preload library, as one tree.

PartageError
└── LibraryError
    ├── NotBuilt      the C sources could not be compiled: what is missing, or what the compiler said
    ├── FileRefused   a file is no shared object that can be read: which one, and what about it
    └── NotInstalled  the library could not be written to where it belongs, or something else is there
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class LibraryError(PartageError):
    """Base of everything expected around the preload library."""


class NotBuilt(LibraryError):
    """The C sources could not be compiled."""


class FileRefused(LibraryError):
    """A file is no shared object that can be read."""


class NotInstalled(LibraryError):
    """The library could not be written to where it belongs."""
