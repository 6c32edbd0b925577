"""A listening unix socket, bound to a temporary name and renamed to its path.

At every moment the path leads to a socket that accepts connections, so a daemon that starts while its predecessor still
serves takes over without a gap. Sockets of a daemon that was killed in between are removed.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Final

_BACKLOG: Final = 128


def listen(path: Path, *, kind: int = socket.SOCK_STREAM, mode: int = 0o600, backlog: int = _BACKLOG) -> socket.socket:
    """Raises `OSError`. It binds through a descriptor of the folder, since an address holds only 107 bytes."""
    for remains in path.parent.glob(f".{path.name}.*"):
        remains.unlink(missing_ok=True)
    aside = path.parent / f".{path.name}.{os.getpid()}"
    ours = socket.socket(socket.AF_UNIX, kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        ours.bind(f"/proc/self/fd/{folder}/{aside.name}")
        aside.chmod(mode)  # before it listens: until then the kernel refuses connections
        ours.listen(backlog)
        aside.rename(path)
    except BaseException:
        ours.close()
        aside.unlink(missing_ok=True)
        raise
    finally:
        os.close(folder)
    return ours
