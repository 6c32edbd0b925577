"""All intercepted calls of one connection, with a state table.

When an intercepted call arrives here, its headers have already gone upstream. Its DATA is credited to the client on
arrival, so that a message may be larger than any window, unless the quota has no room for it. After the decision it is
either sent as the runtime's windows allow, or answered here: the runtime then sees a reset and never a message.

    COLLECTING  its headers are upstream, its DATA is buffered here
    JUDGING     it is complete and waits for a decision
    SENDING     it is being sent upstream, as far as windows allow
    SENT        the runtime has all of it, and its response passes through
    DEAF        it has been answered, but the client has not ended it: further DATA is discarded
    GONE        it is no longer tracked; its frames pass through

A call that is not in the table is not intercepted. A step without an entry in the table is a protocol error of the
client.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed
from partage_crishim.decisions import Code, Decision, Ended, Ending, InterceptedCall, Refuse, Rewrite
from partage_crishim.proxy.http2.messages import (
    MAX_MESSAGE_BYTES,
    NO_MESSAGE,
    Message,
    MessageCollector,
    Unreadable,
    answer,
    plain,
)
from partage_crishim.proxy.http2.outbox import CallEnded, DecisionUnwanted, DecisionWanted, Outbox, Rejected
from partage_crishim.proxy.http2.quota import Quota, Slot
from partage_crishim.proxy.http2.requests import Request
from partage_crishim.proxy.http2.windows import MAX, Windows

_OURS: Final = frames.FRAME_BYTES
_MAX_DEAF: Final = 256
"""A client need not end a call that was answered; beyond this number the oldest such calls are forgotten."""
_NO_ROOM: Final = "partage: too many requests are being held; this one is refused and can be tried again"


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


_NEXT: Final = {
    State.COLLECTING: {Step.WHOLE: State.JUDGING, Step.ANSWERED: State.DEAF, Step.CLIENT_LEFT: State.GONE},
    State.JUDGING: {Step.APPROVED: State.SENDING, Step.ANSWERED: State.GONE, Step.CLIENT_LEFT: State.GONE},
    State.SENDING: {Step.EMPTIED: State.SENT, Step.ANSWERED: State.GONE, Step.CLIENT_LEFT: State.GONE},
    State.SENT: {Step.ANSWERED: State.GONE, Step.CLIENT_LEFT: State.GONE},
    State.DEAF: {Step.CLIENT_ENDED: State.GONE, Step.CLIENT_LEFT: State.GONE},
}
_KEPT: Final = frozenset({State.JUDGING, State.SENDING})
"""States in which its request is still needed."""


class InterceptedStream:
    """The state of one intercepted call."""

    def __init__(self, stream: int, request: Request, slot: Slot) -> None:
        self.stream = stream
        self.request = request
        self.slot = slot
        self.state = State.COLLECTING
        self.collector = MessageCollector()
        self.is_complete = False
        """The client has sent its last byte; the call may still wait for room."""
        self.owed = 0
        """Credits that the client gets once there is room."""
        self.message = NO_MESSAGE
        self.left = memoryview(b"")
        """Bytes not yet sent upstream."""
        self.credit = 0
        """The runtime's credits for this stream minus the bytes sent on it; added to the initial window."""
        self.ended: Ended | None = None
        """The callback for the end of the call; None once it was called."""
        self.is_begun = False
        """The first headers of the response have passed."""


class Calls:
    """The intercepted calls of a connection, by stream id."""

    def __init__(self, out: Outbox, windows: Windows, quota: Quota, wake: Callable[[], None]) -> None:
        self.by_stream: dict[int, InterceptedStream] = {}
        self._out = out
        self._windows = windows
        self._quota = quota
        self._wake = wake
        self._sending: dict[int, InterceptedStream] = {}
        self._deaf: dict[int, InterceptedStream] = {}
        self._credits: dict[int, int] = {}

    # Events from the client.

    def open(self, stream: int, request: Request) -> None:
        """Add a call to intercept, whose headers have been forwarded."""
        is_one_too_many = len(self.by_stream) - len(self._deaf) >= self._quota.limits.calls_each
        slot = self._quota.enter(partial(self._let_in, stream))
        held = self.by_stream[stream] = InterceptedStream(stream, request, slot)
        if is_one_too_many or slot.is_one_too_many:
            self._reject(held, Unreadable(Code.RESOURCE_EXHAUSTED, _NO_ROOM))

    def data(self, held: InterceptedStream, payload: bytes, flow: int, *, is_last: bool) -> None:
        """DATA of an intercepted call, which counts as `flow` bytes of flow control."""
        self._credit(0, flow)
        if held.state is State.DEAF:
            if is_last:
                self._move(held, Step.CLIENT_ENDED)
            return
        if held.is_complete:
            raise Malformed(ErrorCode.STREAM_CLOSED, "DATA after the end of a request")
        held.is_complete = is_last
        try:
            held.collector.add(payload, is_last=is_last)
            self._find_room(held, flow)
        except Unreadable as unreadable:
            self._reject(held, unreadable)

    def reset(self, held: InterceptedStream) -> bool:
        """The client cancelled; returns whether to forward the reset to the runtime."""
        is_new = held.state is not State.DEAF
        if held.state is State.JUDGING:
            self._out.events.append(DecisionUnwanted(held.stream))
        self._tell(held, Ending.UNKNOWN)
        self._move(held, Step.CLIENT_LEFT)
        return is_new

    def trailers(self, held: InterceptedStream) -> None:
        """Headers after DATA, which these calls do not use.

        They have been forwarded, since all later header blocks depend on them: the runtime sees a call without a
        message.
        """
        if held.state is not State.DEAF and held.is_complete:
            raise Malformed(ErrorCode.STREAM_CLOSED, "headers after the end of a request")
        self._move(held, Step.CLIENT_LEFT)

    # Decisions of admission.

    def decided(self, stream: int, decision: Decision) -> None:
        """Apply a decision; if it is no longer wanted, its `ended` callback gets `FAILED`."""
        held = self.by_stream.get(stream)
        if held is None or held.state is not State.JUDGING:
            if not isinstance(decision, Refuse):
                self._out.events.append(CallEnded(decision.ended, Ending.FAILED))
            return
        if isinstance(decision, Refuse):
            self._answer(held, decision.code, decision.sentence)
            return
        message = Message(False, decision.message) if isinstance(decision, Rewrite) else held.message
        held.left, held.message, held.ended = memoryview(message.framed), NO_MESSAGE, decision.ended
        self._sending[stream] = held
        self._move(held, Step.APPROVED)

    # Events from the runtime.

    def pump(self) -> None:
        """Send what decisions let go on, as far as the windows allow."""
        windows = self._windows
        for held in list(self._sending.values()):
            while size := max(0, min(len(held.left), _OURS, windows.left, windows.initial + held.credit)):
                part, held.left = held.left[:size], held.left[size:]
                self._out.to_upstream.append(frames.data_frame(held.stream, part, is_last=not held.left))
                windows.sent(size)
                held.credit -= size
            if not held.left:
                self._move(held, Step.EMPTIED)

    def credited(self, held: InterceptedStream, credit: int) -> None:
        """The runtime opened this stream's window further. We alone give the client its window for it."""
        held.credit += credit
        if held.credit + self._windows.initial > MAX:
            raise Malformed(ErrorCode.FLOW_CONTROL_ERROR, "credits beyond every window")

    def has_message(self, held: InterceptedStream) -> None:
        """Part of a response message arrived: the call was carried out."""
        self._tell(held, Ending.DONE)

    def answered(self, held: InterceptedStream, ending: Ending, *, is_reset: bool) -> None:
        """The runtime ended the call, perhaps before it received all of it."""
        if held.state is State.DEAF:
            return
        if held.state is State.JUDGING:
            self._out.events.append(DecisionUnwanted(held.stream))
        if held.state is not State.SENT and not is_reset:
            self._out.to_upstream.append(frames.rst_stream(held.stream, ErrorCode.CANCEL))
        self._tell(held, ending)
        self._finish(held)

    def beyond(self, last: int) -> None:
        """The runtime is going away and will not answer calls after stream `last`."""
        for held in [held for stream, held in self.by_stream.items() if stream > last]:
            self.answered(held, Ending.FAILED, is_reset=True)

    def lose_all(self) -> None:
        for held in list(self.by_stream.values()):
            self.reset(held)

    def flush_credits(self) -> None:
        """Send the client the credits for received DATA."""
        for stream, credit in self._credits.items():
            self._out.tell_client(frames.window_update(stream, credit))
        self._credits.clear()

    # Internals.

    def _find_room(self, held: InterceptedStream, flow: int) -> None:
        """Request quota as soon as the size is known; DATA that arrives before it is granted is counted separately."""
        slot, need = held.slot, held.collector.need
        held.owed += flow
        if not slot.size and need is not None:
            self._quota.ask(slot, need + (MAX_MESSAGE_BYTES if held.collector.is_compressed else 0))
        if slot.is_let_in:
            self._go_on(held)
        elif not self._quota.add_unasked(slot, flow):
            raise Unreadable(Code.RESOURCE_EXHAUSTED, _NO_ROOM)

    def _go_on(self, held: InterceptedStream) -> None:
        """Continue with a call that has room."""
        if not held.is_complete:
            self._credit(held.stream, held.owed)
            held.owed = 0
            return
        held.message = held.collector.whole()
        call = InterceptedCall(held.request.method, plain(held.message, held.request.encoding))
        self._move(held, Step.WHOLE)
        self._out.events.append(DecisionWanted(held.stream, call))

    def _let_in(self, stream: int) -> None:
        """Room became available for a call that was queued."""
        held = self.by_stream[stream]
        try:
            self._go_on(held)
        except Unreadable as unreadable:
            self._reject(held, unreadable)
        self.flush_credits()
        self._wake()

    def _reject(self, held: InterceptedStream, unreadable: Unreadable) -> None:
        self._out.events.append(Rejected(held.stream, unreadable.code))
        self._answer(held, unreadable.code, str(unreadable))

    def _answer(self, held: InterceptedStream, code: Code, sentence: str) -> None:
        stream = held.stream
        self._out.to_upstream.append(frames.rst_stream(stream, ErrorCode.CANCEL))
        self._out.tell_client(answer(stream, code.value, sentence, is_begun=held.is_begun))
        if not held.is_complete:
            self._out.tell_client(frames.rst_stream(stream, ErrorCode.NO_ERROR))
        self._finish(held)

    def _tell(self, held: InterceptedStream, ending: Ending) -> None:
        if held.ended is not None:
            self._out.events.append(CallEnded(held.ended, ending))
            held.ended = None

    def _credit(self, stream: int, credit: int) -> None:
        if credit:
            self._credits[stream] = self._credits.get(stream, 0) + credit

    def _finish(self, held: InterceptedStream) -> None:
        self._move(held, Step.ANSWERED)
        if held.state is State.DEAF and held.is_complete:
            self._move(held, Step.CLIENT_ENDED)

    def _move(self, held: InterceptedStream, step: Step) -> None:
        held.state = _NEXT[held.state][step]
        stream = held.stream
        if held.state in _KEPT:
            return
        self._sending.pop(stream, None)
        self._credits.pop(stream, None)
        if held.state is State.DEAF:
            self._deaf[stream] = held
            if len(self._deaf) > _MAX_DEAF:
                self._move(next(iter(self._deaf.values())), Step.CLIENT_LEFT)
        elif held.state is State.GONE:
            self._deaf.pop(stream, None)
            del self.by_stream[stream]
        held.collector, held.message, held.left = MessageCollector(), NO_MESSAGE, memoryview(b"")
        self._quota.leave(held.slot)
