"""A daemon of which tests choose the answers: one line is asked on each connection of a unix socket.

It runs in a thread, because clients block.
"""

from __future__ import annotations

import os
import socket
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self


def listening(path: Path) -> socket.socket:
    """Listen at this path, by a descriptor of its folder, because a socket address holds only 107 bytes of path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    server, folder = socket.socket(socket.AF_UNIX), os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    server.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)
    server.listen()
    return server


class LineServer(ABC):
    def __init__(self, path: Path) -> None:
        self.path = path
        self._server = listening(path)
        self._left_open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, name=f"{type(self).__name__} of a test")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def answer(self, line: bytes, peer: socket.socket) -> bytes | None:
        """The answer, after which the connection is closed. None leaves it open, like a daemon that hangs."""

    def close(self) -> None:
        """Stop listening, after pending questions are read; the socket's file stays, as after a kill."""
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in (self._server, *self._left_open):
            each.close()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError:  # closed
                return
            with peer.makefile("rb") as lines:
                line = lines.readline()
            answer = self.answer(line, peer) if line else b""
            if answer is None:
                self._left_open.append(peer)
                continue
            with peer:
                peer.sendall(answer)
