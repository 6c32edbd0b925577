"""Bytes to write to either side, and events for the proxy, each in order."""

from __future__ import annotations

from msgspec import Struct

from partage_crishim.decisions import Code, Ended, Ending, InterceptedCall


class DecisionWanted(Struct, frozen=True):
    """This call waits for a decision."""

    stream: int
    call: InterceptedCall


class DecisionUnwanted(Struct, frozen=True):
    """The decision on this call is no longer wanted."""

    stream: int


class Rejected(Struct, frozen=True):
    """This call was answered before a decision: it cannot be read, or there is no room."""

    stream: int
    code: Code


class CallEnded(Struct, frozen=True):
    """How a forwarded call ended; sent once for each call that a decision let through."""

    ended: Ended
    ending: Ending


ProxyEvent = DecisionWanted | DecisionUnwanted | Rejected | CallEnded


class Outbox:
    """The output of one pair. The writer takes the lists and leaves them empty."""

    def __init__(self) -> None:
        self.to_client: list[bytes] = []
        self.to_upstream: list[bytes] = []
        self.events: list[ProxyEvent] = []
        self._early: list[bytes] | None = []

    def tell_client(self, *frames: bytes) -> None:
        (self.to_client if self._early is None else self._early).extend(frames)

    def begin(self) -> None:
        """The runtime's first frame has been forwarded."""
        if self._early is not None:
            self.to_client += self._early
            self._early = None
