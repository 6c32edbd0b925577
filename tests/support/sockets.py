"""Unix sockets at paths of any length, and a daemon that is asked one line on each connection.

A socket address holds only 107 bytes of path, so sockets are bound and connected by a descriptor of their folder.
"""

from __future__ import annotations

import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from rig.patience import PATIENCE_S


def listening(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    with _short(path) as address:
        server.bind(address)
    server.listen()
    return server


def connected(path: Path) -> socket.socket:
    """A SEQPACKET connection."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.settimeout(PATIENCE_S)
    try:
        with _short(path) as address:
            peer.connect(address)
    except BaseException:
        peer.close()
        raise
    return peer


@contextmanager
def _short(path: Path) -> Generator[str]:
    """Its path by way of a descriptor of its folder."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class LineServer(ABC):
    """Serves in a thread, because clients block. Tests choose its answers."""

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
                if answer:  # nobody may be there to take even nothing
                    peer.sendall(answer)
