"""Clients that came while the runtime did not answer, until it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from partage_crishim.h2.stand_in import StandIn

_CLOSE_WITHIN_S: Final = 1.0


class AwayClient(asyncio.Protocol):
    def __init__(self, sentence: str, on_gone: Callable[[AwayClient], None]) -> None:
        self._stand_in = StandIn(sentence)
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._impatience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and speak first."""
        self._transport = cast("asyncio.Transport", transport)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        """Nothing can be sent any more."""
        self._transport = None
        if self._impatience is not None:
            self._impatience.cancel()
        self._on_gone(self)

    def data_received(self, data: bytes) -> None:
        self._stand_in.from_client(data)
        self._flush()

    def pause_writing(self) -> None:
        """It asks and does not listen: it isn't listened to either."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def leave(self) -> None:
        """The runtime is back, or this process goes."""
        self._stand_in.leave()
        self._flush()

    def _flush(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._stand_in.to_client:
            self._transport.write(b"".join(self._stand_in.to_client))
            self._stand_in.to_client.clear()
        if self._stand_in.is_over:
            self._impatience = asyncio.get_running_loop().call_later(_CLOSE_WITHIN_S, self._transport.abort)
            self._transport.close()
