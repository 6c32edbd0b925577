"""One client and its connection to the runtime: bytes in, bytes and events out.

    pair = Pair(quota)
    pair.from_client(data)      bytes to write are in pair.out.to_upstream and pair.out.to_client
    pair.from_upstream(data)    events for the proxy in pair.out.events, and new calls in pair.methods
    pair.decided(stream, decision)

Data that must not be parsed yet, because the runtime has no room for it (see `windows`), is buffered as if it had not
arrived, and `is_blocked` signals that the client should not be read.
"""

from __future__ import annotations

from collections.abc import Callable

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed
from partage_crishim.decisions import Decision, Refuse
from partage_crishim.proxy.http2.paths import DRAINING, ConnectionPairState, RequestPath, ResponsePath
from partage_crishim.proxy.http2.quota import Quota


class ConnectionPair:
    """All state of the two. `wake` is called when there is output after another pair released quota."""

    def __init__(self, quota: Quota, wake: Callable[[], None] = lambda: None) -> None:
        self.over: str | None = None
        """Why both connections are to be closed, once the outbox is written."""
        self.is_broken = False
        """Whether the reason is a protocol error of a peer."""
        self._state = ConnectionPairState(quota, wake)
        self._requests = RequestPath(self._state)
        self._answers = ResponsePath(self._state)
        self.out = self._state.out
        self.methods = self._requests.methods
        """Methods of new calls, in order; the reader empties it."""

    @property
    def is_blocked(self) -> bool:
        """Whether reading from the client should pause."""
        return self._state.is_blocked

    @property
    def held_calls(self) -> int:
        """The number of tracked calls: collecting, deciding, sending, or answered while the client still sends."""
        return len(self._state.calls.by_stream)

    @property
    def kept_bytes(self) -> int:
        """Bytes of both sides that are incomplete frames, or have to wait."""
        return self._requests.kept_bytes + self._answers.kept_bytes

    def from_client(self, data: bytes) -> None:
        if self.over is not None:
            return
        try:
            self._requests.take(data)
        except Malformed as error:
            self._break(error.fault, str(error))
        self._finish_draining()

    def from_upstream(self, data: bytes) -> None:
        if self.over is not None:
            return
        try:
            self._answers.take(data)
            if self._state.is_blocked:
                self._requests.go_on()
        except Malformed as error:
            self._break(ErrorCode.INTERNAL_ERROR, f"between the client and the runtime: {error}")
        self._pump()
        self._finish_draining()

    def decided(self, stream: int, decision: Decision) -> None:
        """Apply the decision on an intercepted call."""
        self._state.calls.decided(stream, decision)
        if isinstance(decision, Refuse):
            self._state.open.discard(stream)
        self._pump()
        self._finish_draining()

    def drain(self) -> None:
        """Ask the client to send new calls elsewhere; `over` is set once all its calls are answered.

        The echo of our PING proves that no call is in transit that was made before the client saw the GOAWAY.
        """
        if not self._state.is_draining:
            self._state.is_draining = True
            away = frames.goaway(frames.MAX_STREAM, ErrorCode.NO_ERROR, "restarting")
            self.out.tell_client(away, frames.ping(DRAINING))

    def leave(self, why: str) -> None:
        """Tell the client which calls were accepted, and that no others were; for when there is no time to drain."""
        self._end(ErrorCode.NO_ERROR, why)

    def lost(self, why: str) -> None:
        """One of the connections has ended; all calls fail."""
        if self.over is None:
            self.over = why
        self._state.calls.lose_all()

    def _pump(self) -> None:
        """Send rewritten messages, but not while data of the client waits for the window."""
        if not self._state.is_blocked and self.over is None:
            self._state.calls.pump()

    def _finish_draining(self) -> None:
        if self._state.has_seen_goaway and not self._state.open and self.over is None:
            self._end(ErrorCode.NO_ERROR, "drained")

    def _break(self, fault: ErrorCode, why: str) -> None:
        self.is_broken = True
        self._end(fault, why)

    def _end(self, fault: ErrorCode, why: str) -> None:
        self.out.tell_client(frames.goaway(self._state.last, fault, why))
        self.lost(why)
