"""What the broker expects to go wrong by itself; what its peers do wrong is in their rooms' trees.

PartageError
└── BrokerError
    ├── NoRows          the file of rows can't be made: no room, wrong owner
    ├── SpecRefused     what is asked for a container can't be: an older gen, other grants, a card it does not have
    ├── NoFolder        a container's folder can't be made as it must be
    └── NoLibrary       the preload library is not installed, so no limit would hold

Messages say what failed, on what, and what to do. What a client of a container does wrong is no error of ours: it gets
an answer or is let go, and is counted.
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class BrokerError(PartageError):
    pass


class NoRows(BrokerError):
    """The file of rows can't be made."""


class SpecRefused(BrokerError):
    """What is asked for a container can't be."""


class NoFolder(BrokerError):
    """A container's folder can't be made as it must be."""


class NoLibrary(BrokerError):
    """The preload library is not installed."""
