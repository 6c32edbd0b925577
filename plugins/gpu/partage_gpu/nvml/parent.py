"""The life of a child that asks NVML, and its bond with its parent: it speaks to it from any thread, and ends with it.

NVML is called in the main thread, which may hang in it for ever; another one waits for the end of the parent, so that a
child which hangs does not outlive it. When the driver is gone or another one the process ends: only a new one loads a
new library and finds new cards.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Generic, NoReturn

from partage_gpu.driver_root import installed_root
from partage_gpu.nvml.libraries import NoDriver, open_driver
from partage_gpu.nvml.wire import MAX_BYTES, Ended, Packets, Q, T


class Parent(Generic[Q, T]):
    """One end of the socket between them."""

    def __init__(self, connection: socket.socket, words: Packets[Q, T]) -> None:
        self.connection, self._words = connection, words
        self._spoke = time.monotonic()

    def tell(self, message: T | Ended) -> None:
        """One message. Without a parent there is nothing left to do here."""
        self._spoke = time.monotonic()
        try:
            self.connection.send(self._words.encoded(message))
        except OSError:
            os._exit(0)

    def asks(self) -> Q | None:
        """The next question; None where the parent is gone."""
        packet = self.connection.recv(MAX_BYTES)
        return self._words.question(packet) if packet else None

    @property
    def untold_s(self) -> float:
        """How long it has heard nothing."""
        return time.monotonic() - self._spoke


def live(said: str, words: Packets[Q, T], session: Callable[[str, ctypes.CDLL, Parent[Q, T]], None]) -> NoReturn:
    """Until the parent or the driver is gone; `said` is where people say that the driver is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = Parent(socket.socket(fileno=0), words)
    threading.Thread(target=_wait_for_the_end, name="parent", daemon=True).start()
    driver_root = installed_root(said)
    try:
        session(driver_root, open_driver(driver_root), parent)
    except NoDriver as gone:
        parent.tell(Ended(gone.trouble))
    # No finalisation: it would wait for a thread that may be in the driver.
    os._exit(0)


def _wait_for_the_end() -> None:
    """The kernel tells that the other end of the socket, which is standard input, is closed."""
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    os._exit(0)


def give_memory_back() -> None:
    """Without cached bytecode, as in some images, to import pynvml takes 11 MiB more than to have it."""
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
