"""Flow control of the connection to the runtime, when what is sent there differs from what the client sent.

The client counts the bytes it sends against the credits it sees; the runtime counts the bytes it receives against the
credits it gave. As long as everything passes through, both counts are equal. Two things make them differ:

- we credit DATA of intercepted calls to the client at once, and the runtime never sees it;
- the runtime counts the messages that we send in its place, which the client never sent. They are our `debt`: the
  runtime will return as many credits, and the client must not see them.

So at every moment: what the client may send = what the runtime accepts (`left`) + `debt`. While there is debt, the
client may send data that the runtime cannot accept yet; it is buffered here.
"""

from __future__ import annotations

from typing import Final

from partage_base.http2.frames import ErrorCode, Malformed

DEFAULT: Final = 65535
MAX: Final = (1 << 31) - 1


class Windows:
    """The runtime's windows for one connection."""

    def __init__(self) -> None:
        self.left = DEFAULT
        self.debt = 0
        self.initial = DEFAULT
        """What a new stream may send."""

    def set_initial(self, size: int) -> None:
        """The runtime changed the initial window, which applies to open streams too."""
        if size > MAX:
            raise Malformed(ErrorCode.FLOW_CONTROL_ERROR, f"a window of {size} bytes")
        self.initial = size

    def sent(self, size: int) -> None:
        """Count bytes that we sent and the client did not."""
        self.left -= size
        self.debt += size

    def credited(self, credit: int) -> int:
        """Add the runtime's credit; returns the part of it to forward to the client."""
        self.left += credit
        if self.left > MAX:
            raise Malformed(ErrorCode.FLOW_CONTROL_ERROR, "credits beyond every window")
        swallowed = min(self.debt, credit)
        self.debt -= swallowed
        return credit - swallowed

    def must_wait(self, size: int) -> bool:
        """Whether the client's DATA has to wait because our own messages used the window that it sees."""
        if not self.debt or size <= self.left:
            return False  # without debt both counts are equal, and the runtime enforces its window
        if size > self.left + self.debt:
            raise Malformed(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than there were credits")
        return True
