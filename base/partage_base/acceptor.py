"""Accepts connections at one address, and bounds callers who have not shown yet what they come for.

Such a caller is a *guest*: a connection without a whole request, or in the middle of its TLS handshake. Guests are
counted from the moment in which they are accepted, in all and by origin. Of too many the oldest goes, so that a
silent caller keeps no newer one out; and it is one of the origin that has most, so that an address which connects
without pause loses its own guests alone. A turn of the loop accepts few, between which the guests that are there are
served: a caller which speaks at once is heard before others can push it out, and one behind many waits for few turns.
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
"""Connections that are accepted in one turn of the loop: who speaks at once is answered within six turns."""
_BACKLOG: Final = 256
_EXHAUSTED_S: Final = 0.5
"""Without free descriptors no connection can be accepted until another one ends."""


class Guests(Generic[G]):
    """Who is there, and who goes for whom. Pure."""

    def __init__(self, *, most: int = MOST_GUESTS, most_of_one: int = MOST_OF_ONE) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._by_origin: dict[str, dict[G, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def come(self, guest: G, origin: str) -> G | None:
        """One more; who has to go for it."""
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
        """It is no guest any more."""
        of_one = self._by_origin.get(origin, {})
        if guest in of_one:
            del of_one[guest]
            self._count -= 1
            if not of_one:
                del self._by_origin[origin]


class Guest:
    """One connection, until it has shown what it comes for."""

    def __init__(self, sock: socket.socket, origin: str, known: Callable[[Guest], None]) -> None:
        self.sock, self.origin, self._known = sock, origin, known
        self.task: asyncio.Task[None] | None = None

    def known(self) -> None:
        """It counts no more here: who serves it bounds it."""
        self._known(self)

    def leave(self) -> None:
        """Its task is cancelled, and with it the connection ends."""
        if self.task is not None:
            self.task.cancel()


Serve = Callable[[Guest], Coroutine[Any, Any, None]]


class Acceptor:
    """Listens at one address and serves each connection by a task of its own."""

    def __init__(self, host: str, port: int, serve: Serve) -> None:
        """`serve` has a connection from its beginning to its end, and is cancelled where it has to go."""
        self._host, self._port, self._serve = host, port, serve
        self._guests = Guests[Guest]()
        self._listening: dict[socket.socket, asyncio.TimerHandle | None] = {}
        """With the time to go on at where no descriptor is free."""
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0
        """The one that was opened, where the address asked for any."""

    async def open(self) -> None:
        """Listens; raises `OSError`, or `UnicodeError` for what can't be a name."""
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
        """Accepts no more connections; those that are open stay."""
        for sock, again in self._listening.items():
            if again is None:
                asyncio.get_running_loop().remove_reader(sock)
            else:
                again.cancel()
            sock.close()
        self._listening.clear()

    async def abort(self) -> None:
        """Ends what is being served too, and waits for it."""
        await self.close()
        tasks = set(self._serving)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)  # transports that were aborted let go of their sockets

    def _listen(self, listening: socket.socket) -> None:
        self._listening[listening] = None
        asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Those who are there, so many in a turn of the loop; it comes here again while there are more."""
        for _ in range(A_TURN):
            try:
                sock, address = listening.accept()
            except BlockingIOError:
                return
            except ConnectionError:  # it went before it was there
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
        with contextlib.suppress(OSError, TimeoutError):  # the caller's own fault, and not worth a line
            await self._serve(guest)

    def _known(self, guest: Guest) -> None:
        self._guests.go(guest, guest.origin)

    def _gone(self, guest: Guest) -> None:
        """Also one that had to go before it was served."""
        self._known(guest)
        guest.sock.close()


def origin_of(address: str) -> str:
    """Whom a connection is counted for: an IPv4 address, or the 64 bits of an IPv6 network, where one host has many."""
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
