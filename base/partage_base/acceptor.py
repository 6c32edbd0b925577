"""Accepts connections at one address, and limits connections that have not sent a request yet.

Such a connection is a *guest*: it has no whole request yet, or is in the middle of its TLS handshake. Guests are
counted from the moment they are accepted, in total and by origin. Above a limit the oldest guest is closed, so that
silent ones keep no newer one out; it is one of the origin that has most, so that an address which connects without
pause only loses its own guests. A turn of the event loop accepts few connections, and existing guests are served
between turns: one that sends its request at once is read before others can displace it, and one behind many in the
backlog waits for few turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, Generic, TypeVar

G = TypeVar("G")
MOST_GUESTS: Final = 64
MOST_OF_ONE: Final = 32
A_TURN: Final = 4
"""Connections accepted in one turn of the loop: one that sends at once is answered within six turns."""
_BACKLOG: Final = 256
_EXHAUSTED_S: Final = 0.5
"""Delay after running out of descriptors: no connection can be accepted until another one ends."""


class Guests(Generic[G]):
    """The guests by origin, and which one is closed for another. Pure."""

    def __init__(self, *, most: int = MOST_GUESTS, most_of_one: int = MOST_OF_ONE) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._by_origin: dict[str, dict[G, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def come(self, guest: G, origin: str) -> G | None:
        """Adds a guest; returns the one to close for it."""
        self._by_origin.setdefault(origin, {})[guest] = None
        self._count += 1
        if len(self._by_origin[origin]) <= self._most_of_one and self._count <= self._most:
            return None
        of_one = len(self._by_origin[origin]) > self._most_of_one
        whose = origin if of_one else max(self._by_origin, key=lambda each: len(self._by_origin[each]))
        oldest = next(iter(self._by_origin[whose]))
        self.go(oldest, whose)
        return oldest

    def go(self, guest: G, origin: str) -> None:
        """The guest was served or closed: it no longer counts."""
        of_one = self._by_origin.get(origin, {})
        if guest in of_one:
            del of_one[guest]
            self._count -= 1
            if not of_one:
                del self._by_origin[origin]


class Guest:
    """One connection, until it has sent its request."""

    def __init__(self, sock: socket.socket, origin: str, known: Callable[[Guest], None]) -> None:
        self.sock, self.origin, self._known = sock, origin, known
        self.task: asyncio.Task[None] | None = None

    def known(self) -> None:
        """Stops counting it here; the server that handles it limits it from now on."""
        self._known(self)

    def leave(self) -> None:
        """Cancels its task, which closes the connection."""
        if self.task is not None:
            self.task.cancel()


Serve = Callable[[Guest], Coroutine[Any, Any, None]]


class Acceptor:
    """Listens at one address and serves each connection in a task of its own."""

    def __init__(self, host: str, port: int, serve: Serve) -> None:
        """`serve` handles a connection from beginning to end, and is cancelled if the connection must be closed."""
        self._host, self._port, self._serve = host, port, serve
        self._guests = Guests[Guest]()
        self._listening: dict[socket.socket, asyncio.TimerHandle | None] = {}
        """With the timer to resume accepting after descriptors ran out."""
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0
        """The port that was opened, if the address has port 0."""

    async def open(self) -> None:
        """Listens; raises `OSError`, or `UnicodeError` for an invalid host name."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host or None, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        sockets: list[socket.socket] = []
        try:
            for family, address in dict.fromkeys((each[0], each[4]) for each in found):
                sockets.append(_listening(family, address))
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        self.port = sockets[0].getsockname()[1]
        for sock in sockets:
            self._listen(sock)

    async def close(self) -> None:
        """Accepts no more connections; open ones stay."""
        for sock, again in self._listening.items():
            if again is None:
                asyncio.get_running_loop().remove_reader(sock)
            else:
                again.cancel()
            sock.close()
        self._listening.clear()

    async def abort(self) -> None:
        """Closes open connections too, and waits for their tasks."""
        await self.close()
        tasks = set(self._serving)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)  # aborted transports close their sockets

    def _listen(self, listening: socket.socket) -> None:
        self._listening[listening] = None
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Accepts up to `A_TURN` connections; the loop calls it again while there are more."""
        for _ in range(A_TURN):
            try:
                sock, address = listening.accept()
            except BlockingIOError:
                return
            except ConnectionError:  # the peer closed it before it was accepted
                continue
            except OSError:
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                self._listening[listening] = loop.call_later(_EXHAUSTED_S, self._listen, listening)
                return
            sock.setblocking(False)
            self._come(Guest(sock, origin_of(address[0]), self._known))

    def _come(self, guest: Guest) -> None:
        guest.task = asyncio.create_task(self._served(guest))
        self._serving.add(guest.task)
        guest.task.add_done_callback(self._serving.discard)
        guest.task.add_done_callback(lambda _task: self._gone(guest))
        leaves = self._guests.come(guest, guest.origin)
        if leaves is not None:
            leaves.leave()

    async def _served(self, guest: Guest) -> None:
        with contextlib.suppress(OSError, TimeoutError):  # the peer's own fault, and not worth a log line
            await self._serve(guest)

    def _known(self, guest: Guest) -> None:
        self._guests.go(guest, guest.origin)

    def _gone(self, guest: Guest) -> None:
        """Also called for a guest that was closed before it was served."""
        self._known(guest)
        guest.sock.close()


def origin_of(address: str) -> str:
    """The origin that a connection counts for: an IPv4 address, or an IPv6 /64, where one host has many addresses."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found if isinstance(found, IPv4Address) else IPv6Address(int(found) >> 64 << 64))


def _listening(family: int, address: Any) -> socket.socket:  # noqa: ANN401  (as `getaddrinfo` gives it)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock
