"""One held call and its life, as a table.

    COLLECTING  its headers are upstream, its DATA comes to us
    JUDGING     it is whole and waits for a verdict
    SENDING     it goes on upstream, as far as windows allow
    SENT        the runtime has all of it, and its answer passes
    DEAF        it has been answered, but the client has not ended it: what still comes is swallowed
    GONE        nothing is known of it; what comes for it passes

A call that isn't in the table is none of ours. Where the table has no entry, the client broke the protocol.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from partage_crishim.h2.messages import NO_MESSAGE, MessageCollector
from partage_crishim.h2.quota import Slot
from partage_crishim.h2.requests import Request
from partage_crishim.verdicts import Ended


class State(Enum):
    COLLECTING = "collecting"
    JUDGING = "judging"
    SENDING = "sending"
    SENT = "sent"
    DEAF = "deaf"
    GONE = "gone"


class Step(Enum):
    WHOLE = "its last byte is here, and there is room to judge it"
    APPROVED = "the verdict lets it go on"
    EMPTIED = "its last byte has gone upstream"
    ANSWERED = "it has its answer, from us or from the runtime"
    CLIENT_ENDED = "the client sent its last byte"
    CLIENT_LEFT = "the client reset it"


NEXT: Final = {
    State.COLLECTING: {Step.WHOLE: State.JUDGING, Step.ANSWERED: State.DEAF, Step.CLIENT_LEFT: State.GONE},
    State.JUDGING: {Step.APPROVED: State.SENDING, Step.ANSWERED: State.GONE, Step.CLIENT_LEFT: State.GONE},
    State.SENDING: {Step.EMPTIED: State.SENT, Step.ANSWERED: State.GONE, Step.CLIENT_LEFT: State.GONE},
    State.SENT: {Step.ANSWERED: State.GONE, Step.CLIENT_LEFT: State.GONE},
    State.DEAF: {Step.CLIENT_ENDED: State.GONE, Step.CLIENT_LEFT: State.GONE},
}


class HeldStream:
    """What is kept of one."""

    def __init__(self, stream: int, request: Request, slot: Slot) -> None:
        self.stream = stream
        self.request = request
        self.slot = slot
        self.state = State.COLLECTING
        self.collector = MessageCollector()
        self.is_complete = False
        """The client has sent its last byte; it may still wait for room."""
        self.owed = 0
        """Credits that the client gets when there is room."""
        self.message = NO_MESSAGE
        self.left = memoryview(b"")
        """What has yet to go upstream."""
        self.credit = 0
        """The runtime's credits for this stream, less what was sent on it: added to the initial window."""
        self.ended: Ended | None = None
        """The receiver of the end; None once it was told."""
        self.is_begun = False
        """The first headers of the answer have passed."""

    def step(self, step: Step) -> None:
        """Goes on in the table."""
        self.state = NEXT[self.state][step]

    def let_go(self) -> None:
        """Nothing of its request is kept any more."""
        self.collector = MessageCollector()
        self.message = NO_MESSAGE
        self.left = memoryview(b"")
        self.slot.leave()
