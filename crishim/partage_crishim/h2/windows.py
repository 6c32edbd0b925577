"""Flow control of the connection to the runtime, when some of what it takes is not what the client sent.

The client counts what it sends against the credits that it sees; the runtime counts what it gets against those that it
gave. As long as everything passes, both counts are the same. Two things set them apart:

- what is held is credited to the client by us, at once, and the runtime never sees it;
- what is sent in its place is counted by the runtime, and the client never sent it. It is our `debt`: as many credits
  as that will come back, and the client must not see them.

So at every moment: what the client may send = what the runtime takes (`left`) + `debt`. While there is debt, the client
may send what the runtime can't take yet; that has to wait here.
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
        """The runtime changes it, for open streams too."""
        if size > MAX:
            raise Malformed(ErrorCode.FLOW_CONTROL_ERROR, f"a window of {size} bytes")
        self.initial = size

    def sent(self, size: int) -> None:
        """We sent so much that the client did not."""
        self.left -= size
        self.debt += size

    def credited(self, credit: int) -> int:
        """The runtime takes so much more; answers how much of it the client is to know."""
        self.left += credit
        if self.left > MAX:
            raise Malformed(ErrorCode.FLOW_CONTROL_ERROR, "credits beyond every window")
        swallowed = min(self.debt, credit)
        self.debt -= swallowed
        return credit - swallowed

    def must_wait(self, size: int) -> bool:
        """Whether DATA of the client has to wait, because the room that it sees is used by ours."""
        if not self.debt or size <= self.left:
            return False  # where there is no debt, both count the same, and the runtime judges
        if size > self.left + self.debt:
            raise Malformed(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than there were credits")
        return True
