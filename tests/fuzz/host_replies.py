"""For any output of the plugin host's child, split in any way, the parent raises nothing, and no caller waits forever.

A plugin runs in the child and may write to its socket, so this is untrusted input.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from partage_plugins.api import Adjustment
from partage_plugins.framework.node import Adjusted
from partage_plugins.host import messages
from partage_plugins.host.channel import Channel, ChildGone

_WHOLE: Final = (
    messages.Done(id=1),
    messages.Refusal(id=1, why="no"),
    messages.AdjustedReply(id=1, adjusted=Adjusted(adjustment=Adjustment(env={"A": "b"}))),
    messages.Fault(id=1, error="PluginFailed", plugin="p", hook="h", why="w", detail="", traceback=""),
)
SEEDS: Final = (b"\1", *(b"\7" + messages.framed(reply) for reply in _WHOLE), b"\3\xff\xff\xff\xff")


class _Transport(asyncio.Transport):
    """Discards what is written and remembers whether it was closed."""

    def write(self, data: Any) -> None:
        """Discards the data."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignores the limits."""

    def abort(self) -> None:
        """Does nothing."""


async def _story(step: int, data: bytes) -> str:
    channel = Channel()
    channel.connection_made(_Transport())
    asked = asyncio.ensure_future(channel.ask(messages.Stop(id=1)))
    await asyncio.sleep(0)
    for start in range(0, len(data), step):
        if channel.is_open:
            channel.data_received(data[start : start + step])
    if not asked.done():
        channel.connection_lost(None)
    try:
        return type(await asked).__name__
    except ChildGone as gone:
        return str(gone)


_LOOP: Final = asyncio.new_event_loop()


def target(data: bytes) -> str:
    """The first byte sets the size of the pieces."""
    step = (data[0] if data else 0) % 16 + 1
    return _LOOP.run_until_complete(_story(step, data[1:]))
