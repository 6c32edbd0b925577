"""Passes bytes on between a socket of its own and another's, and keeps all of them, by connection and direction.

Run on the node as `python relaying.py LISTEN TO FOLDER`. The socket appears by a rename, in place of whoever was there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import sys
import threading
from pathlib import Path


def carry(source: socket.socket, sink: socket.socket, kept: Path) -> None:
    """Until one of both has nothing more to say; then neither has."""
    with kept.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while chunk := source.recv(1 << 16):
            file.write(chunk)
            sink.sendall(chunk)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def main(listen: str, to: str, folder: str) -> None:
    Path(folder).mkdir(parents=True)
    own = socket.socket(socket.AF_UNIX)
    own.bind(listen + ".new")
    own.listen(128)
    os.rename(listen + ".new", listen)  # noqa: PTH104  a socket is no file to be opened
    for number in itertools.count():
        client, _ = own.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(to)
        for source, sink, name in ((client, server, "asked"), (server, client, "answered")):
            threading.Thread(target=carry, args=(source, sink, Path(folder, f"{number}.{name}")), daemon=True).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
