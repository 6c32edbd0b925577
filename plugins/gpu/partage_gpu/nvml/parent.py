"""The child's bond with its parent: it speaks to it from any of its threads, and ends with it."""

from __future__ import annotations

import ctypes
import gc
import os
import select
import socket
import threading
import time
from typing import Final

from partage_gpu.nvml import wire

_SLOW_S: Final = 0.25


class Parent:
    """One end of the socket between them."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._spoke = time.monotonic()

    def tell(self, message: wire.Told) -> None:
        """One message. Without a parent there is nothing left to do here."""
        self._spoke = time.monotonic()
        try:
            self._connection.send(wire.encoded(message))
        except OSError:
            os._exit(0)

    def returned(self) -> None:
        """A call of NVML returned: now and then the parent is told, so that slow is not taken for hanging.

        Only the main thread counts: the one that waits for events returns from that all the time.
        """
        if time.monotonic() - self._spoke > _SLOW_S and threading.current_thread() is threading.main_thread():
            self.tell(wire.Working())


def end_with_parent() -> None:
    """From now on, whatever the main thread waits for. Standard input is the socket between them."""
    threading.Thread(target=_wait_for_the_end, name="parent", daemon=True).start()


def _wait_for_the_end() -> None:
    """The kernel tells that the other end of the socket is closed."""
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
