"""Expected errors of the peers of the container runtime interface, as one tree.

PartageError
└── CriError
    ├── MessageWrong   bytes are not a message of the expected type
    └── PeerError      a peer gave no response
        ├── PeerAway       it does not listen, the connection broke, or it does not speak HTTP/2
        ├── PeerSlow       no response within the deadline
        └── PeerRefused    it answered with an error status and a message
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class CriError(PartageError):
    """Base of all expected errors."""


class MessageWrong(CriError):
    """Bytes are not a message of that type."""


class PeerError(CriError):
    """A peer gave no response; `peer` is its socket."""

    def __init__(self, peer: str, why: str) -> None:
        super().__init__(peer, why)
        self.peer, self.why = peer, why

    def __str__(self) -> str:
        return f"{self.peer}: {self.why}"


class PeerAway(PeerError):
    """It does not listen, the connection broke, or it does not speak the protocol."""


class PeerSlow(PeerError):
    """No response within the deadline."""


class PeerRefused(PeerError):
    """The peer answered with a status that is not OK."""

    def __init__(self, peer: str, status: int, words: str) -> None:
        super().__init__(peer, f"status {status}: {words}")
        self.status, self.words = status, words
