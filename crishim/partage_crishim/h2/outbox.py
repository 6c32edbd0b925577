"""What is to be written to either side, and what the splice is to be told, each in its order."""

from __future__ import annotations

from msgspec import Struct

from partage_crishim.verdicts import Code, Ended, Ending, HeldCall


class VerdictWanted(Struct, frozen=True):
    """This call waits for a verdict."""

    stream: int
    call: HeldCall


class VerdictUnwanted(Struct, frozen=True):
    """The verdict on this call is no longer wanted."""

    stream: int


class Rejected(Struct, frozen=True):
    """This call was answered before it came to a verdict: it can't be read, or there is no room."""

    stream: int
    code: Code


class CallEnded(Struct, frozen=True):
    """How a call ended that had a verdict; comes once for each that let it go on."""

    ended: Ended
    ending: Ending


Happening = VerdictWanted | VerdictUnwanted | Rejected | CallEnded


class Outbox:
    """Of one pair. The writer takes the lists and leaves them empty."""

    def __init__(self) -> None:
        self.to_client: list[bytes] = []
        self.to_upstream: list[bytes] = []
        self.happenings: list[Happening] = []
        self._early: list[bytes] | None = []

    def tell_client(self, *frames: bytes) -> None:
        (self.to_client if self._early is None else self._early).extend(frames)

    def begin(self) -> None:
        """The runtime's first frame has passed."""
        if self._early is not None:
            self.to_client += self._early
            self._early = None
