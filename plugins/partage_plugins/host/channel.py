"""Carries frames between the event loop and the child, and matches replies to their callers by number.

If a caller gives up, its late reply is dropped.
"""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec

from partage_plugins.host import messages


class ChildGone(Exception):
    """The child closed its end or violated the protocol."""


class Channel(asyncio.Protocol):
    """The parent's end of the socket."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiting: dict[int, asyncio.Future[messages.Reply]] = {}
        self._transport: asyncio.Transport | None = None
        self._gone: ChildGone | None = None

    @property
    def is_open(self) -> bool:
        """Whether questions can still be sent."""
        return self._gone is None and self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has the methods but not the class
        self._transport.set_write_buffer_limits(high=0)  # uvloop writes the excess over this at once, the rest later

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc or "closed its socket"))

    def data_received(self, data: bytes) -> None:
        """Deliver all complete frames received so far."""
        self._buffer += data
        try:
            while (body := messages.taken(self._buffer, at_most=messages.MAX_FRAME_BYTES)) is not None:
                reply = messages.decode_reply(body)
                waiting = self._waiting.get(reply.id)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
        except messages.TooLarge as error:
            self._end(f"sent {error}")
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._end(f"sent what is no reply: {error}")

    async def ask(self, question: messages.Question) -> messages.Reply:
        """Sends a question and returns its reply; raises `ChildGone` if there can be none."""
        if self._gone is not None or self._transport is None:
            raise self._gone or ChildGone("was never connected")
        reply: asyncio.Future[messages.Reply] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = reply
        try:
            self._transport.write(messages.framed(question))
            return await reply
        finally:
            self._waiting.pop(question.id, None)

    def close(self) -> None:
        """Close this end; the child notices and exits."""
        if self._transport is not None:
            self._transport.abort()

    def _end(self, why: str) -> None:
        self._gone = self._gone or ChildGone(why)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ChildGone(why))
        self.close()
