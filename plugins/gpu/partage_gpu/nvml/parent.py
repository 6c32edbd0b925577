"""The main loop of a child that queries NVML, and its link to the parent: it can send from any thread.

NVML is called in the main thread, which may hang in it indefinitely; another thread waits for the end of the parent, so
that a hanging child does not outlive it. When the driver is gone or was replaced, the process exits: only a new one
loads a new library and finds new cards.
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
    """The child's end of the socket."""

    def __init__(self, connection: socket.socket, words: Packets[Q, T]) -> None:
        self.connection, self._words = connection, words
        self._spoke = time.monotonic()

    def tell(self, message: T | Ended) -> None:
        """Sends one message. Without a parent the process exits."""
        self._spoke = time.monotonic()
        try:
            self.connection.send(self._words.encoded(message))
        except OSError:
            os._exit(0)

    def asks(self) -> Q | None:
        """The next question; None if the parent is gone."""
        packet = self.connection.recv(MAX_BYTES)
        return self._words.question(packet) if packet else None

    @property
    def untold_s(self) -> float:
        """How long nothing has been sent to the parent."""
        return time.monotonic() - self._spoke


def live(said: str, words: Packets[Q, T], session: Callable[[str, ctypes.CDLL, Parent[Q, T]], None]) -> NoReturn:
    """Runs until the parent or the driver is gone; `said` is the configured root of the driver."""
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
    """Exits when the kernel reports that the other end of the socket, which is standard input, is closed."""
    poll = select.poll()
    poll.register(0, 0)
    poll.poll()
    os._exit(0)


def give_memory_back() -> None:
    """Without cached bytecode, as in some images, importing pynvml takes 11 MiB more than keeping it does."""
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
