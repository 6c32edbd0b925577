"""Expected errors of the preload library, as one tree.

PartageError
└── LibraryError
    ├── NotBuilt      the C sources could not be compiled: what is missing, or the compiler's message
    ├── FileRefused   a file is no readable shared object: which one, and what is wrong
    └── NotInstalled  the library could not be written to its folder, or something else is there
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class LibraryError(PartageError):
    """Base of all expected errors of the preload library."""


class NotBuilt(LibraryError):
    """The C sources could not be compiled."""


class FileRefused(LibraryError):
    """A file is no readable shared object."""


class NotInstalled(LibraryError):
    """The library could not be written to its folder."""
