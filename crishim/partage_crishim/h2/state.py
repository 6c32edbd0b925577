"""What both walks of a pair share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from partage_base.http2 import frames
from partage_base.http2.frames import ErrorCode, Malformed
from partage_crishim.h2.calls import Calls
from partage_crishim.h2.outbox import Outbox
from partage_crishim.h2.quota import Quota
from partage_crishim.h2.requests import Requests
from partage_crishim.h2.windows import Windows
from partage_crishim.verdicts import Ending


class PairState:
    """Of one client and its connection to the runtime."""

    def __init__(self, quota: Quota, wake: Callable[[], None]) -> None:
        self.out = Outbox()
        self.windows = Windows()
        self.requests = Requests()
        self.calls = Calls(self.out, self.windows, quota, wake)
        self.open: set[int] = set()
        """Calls that have no answer yet."""
        self.last = 0
        """The newest of the client's streams."""
        self.up_bound = Bound()
        self.down_bound = Bound()
        self.is_blocked = False
        """What the client sent next has to wait for the runtime's window."""
        self.is_draining = False
        self.has_seen_goaway = False

    def answered(self, stream: int, ending: Ending, *, is_reset: bool) -> None:
        """The runtime has ended this stream."""
        self.open.discard(stream)
        held = self.calls.by_stream.get(stream)
        if held is not None:
            self.calls.answered(held, ending, is_reset=is_reset)


def run(data: bytes, start: int, end: int) -> bytes:
    """A part of what came; where that is all of it, the very object."""
    return data if end - start == len(data) else data[start:end]


class Bound:
    """How large a frame may be that has to be kept until it is whole: as its receiver has said, who may say more."""

    def __init__(self) -> None:
        self._bytes = frames.FRAME_BYTES

    def widen(self, values: Mapping[int, int]) -> None:
        """The receiver's SETTINGS. Never narrower: frames made before may still be on their way."""
        self._bytes = max(self._bytes, values.get(frames.MAX_FRAME_SIZE, 0))

    def checked(self, need: int) -> int:
        """How many bytes are needed for a frame, or for a header block with what continues it."""
        if need > max(self._bytes, frames.MAX_BLOCK_BYTES) + 2 * frames.HEADER_BYTES:
            raise Malformed(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {need - frames.HEADER_BYTES} bytes")
        return need
