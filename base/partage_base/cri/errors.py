"""What is expected to go wrong with the peers of the container runtime interface, as one tree.

PartageError
└── CriError
    ├── MessageWrong   bytes are no message of the type that they should be
    └── PeerError      a peer gave no answer
        ├── PeerAway       it does not listen, the connection broke, or what came is no HTTP/2
        ├── PeerSlow       no answer within the deadline
        └── PeerRefused    it answered with a status: its number and its words
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class CriError(PartageError):
    """Base of everything expected here."""


class MessageWrong(CriError):
    """Bytes are no message of that type."""


class PeerError(CriError):
    """A peer gave no answer; `peer` is its socket."""

    def __init__(self, peer: str, why: str) -> None:
        super().__init__(peer, why)
        self.peer, self.why = peer, why

    def __str__(self) -> str:
        return f"{self.peer}: {self.why}"


class PeerAway(PeerError):
    """It does not listen, the connection broke, or what came is not the protocol."""


class PeerSlow(PeerError):
    """No answer within the deadline."""


class PeerRefused(PeerError):
    """The peer answered with a status that is not OK."""

    def __init__(self, peer: str, status: int, words: str) -> None:
        super().__init__(peer, f"status {status}: {words}")
        self.status, self.words = status, words
