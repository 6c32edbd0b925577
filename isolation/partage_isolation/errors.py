"""The broker's own expected errors; errors of its peers are in the trees of their modules.

PartageError
└── BrokerError
    ├── NoRows          the file of rows can't be created: no room, wrong owner
    ├── SpecRefused     a request for a container is invalid: an older gen, other grants, a card it does not have
    ├── NoFolder        a container's folder can't be created correctly
    └── NoLibrary       the preload library is not installed, so no limit would hold

Messages say what failed, on what, and what to do. Errors of a container's client raise nothing here: it gets a response
or is disconnected, and is counted.
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class BrokerError(PartageError):
    pass


class NoRows(BrokerError):
    """The file of rows can't be created."""


class SpecRefused(BrokerError):
    """A request for a container is invalid."""


class NoFolder(BrokerError):
    """A container's folder can't be created correctly."""


class NoLibrary(BrokerError):
    """The preload library is not installed."""
