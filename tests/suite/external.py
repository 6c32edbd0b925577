"""An audit hook that detects whether this process starts other processes or connects to them.

A connection to an address that this process has bound stays within the process and does not count. C code that opens
sockets, such as an event loop or gRPC, raises no event; but its peer was started by some process.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from weakref import WeakSet

_STARTS: Final = frozenset(
    ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn", "subprocess.Popen")
)
_TALKS: Final = frozenset(("socket.connect", "socket.sendmsg", "socket.sendto"))


class ExternalUse:
    """Counts uses of other processes, and calls `seen` for each, in the thread of the use."""

    def __init__(self, seen: Callable[[], None] = lambda: None) -> None:
        self.count = 0
        self._seen = seen
        self._lock = threading.RLock()  # reentrant: a finalizer may connect while the lock is held
        self._bound: WeakSet[socket.socket] = WeakSet()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if event in _STARTS or (event in _TALKS and not self._is_bound_here(args[1])):
            self.count += 1
            self._seen()
        elif event == "socket.bind" and isinstance(args[0], socket.socket):
            with self._lock:
                self._bound.add(args[0])

    def _is_bound_here(self, address: object) -> bool:
        if address is None:  # a datagram on a connected socket
            return True
        with self._lock:
            return any(_place(address) == _place(_name(bound)) for bound in self._bound)


def _name(bound: socket.socket) -> object:
    with suppress(OSError):  # closed meanwhile
        return bound.getsockname()
    return None


def _place(address: object) -> object:
    """The common part of two names of one address: the port, regardless of the host's name, or the path."""
    if isinstance(address, tuple) and len(address) > 1 and isinstance(address[1], int):
        return address[1]
    return os.fsencode(address) if isinstance(address, (str, bytes, os.PathLike)) else address
