"""How the child process speaks to its parent, from any of its threads."""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Final

from partage_gpu.nvml import wire

_SLOW_S: Final = 0.25


class Voice:
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
