"""Sockets whose peer may vanish: the kernel finds that out, and closing waits for nobody.

A connection that is left in the middle of a call says goodbye by TLS, to a peer that may be frozen; until it answers,
or half a minute later, the socket stays. So those that we made are remembered, and ended when we end.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final
from weakref import WeakSet

_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
)
_GONE_WITHIN_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.001


class Sockets:
    """Makes them and ends them."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: tuple[int, int, int, str, object]) -> socket.socket:
        """For an address as `getaddrinfo` gives it; a connection on it that nobody answers breaks in half a minute."""
        made = socket.socket(*address[:3])
        for option in _ALIVE:
            made.setsockopt(*option)
        self._made.add(made)
        return made

    async def end(self) -> None:
        """Cuts what is still open, and returns when their owners have let go."""
        with contextlib.suppress(TimeoutError):  # whoever does not let go does so later
            async with asyncio.timeout(_GONE_WITHIN_S):
                while still_open := [each for each in self._made if each.fileno() >= 0]:
                    for each in still_open:
                        with contextlib.suppress(OSError):  # its peer was quicker
                            each.shutdown(socket.SHUT_RDWR)
                    await asyncio.sleep(_LOOK_EVERY_S)
