"""Control connection to a running simgpud: text commands over its driver root's control socket, and its pid."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from partage_simgpu.errors import ControlRefused, NodeFailed

SOCKET: Final = "run/simgpu/control"
_LARGEST_ANSWER: Final = 1 << 20
_ANSWER_S: Final = 30.0
_CREDENTIALS: Final = struct.Struct("3i")
_REFUSED: Final = "error: "


def control(root: Path, command: str) -> str:
    """Sends one command and returns the text after `ok`: empty, or the result."""
    with connected(root) as peer:
        answer = _asked(peer, command, root)
    if answer.startswith(_REFUSED):
        raise ControlRefused(answer.removeprefix(_REFUSED).rstrip())
    if not answer.startswith("ok"):
        raise NodeFailed(f"simgpud of {root} answered {answer[:80]!r} to {command!r}; is it of this version?")
    return answer.removeprefix("ok").strip("\n").removeprefix(" ")


@contextmanager
def connected(root: Path) -> Generator[socket.socket]:
    """Connects to the simgpud that currently serves this driver root."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(_ANSWER_S)
        try:
            _connect(peer, root / SOCKET)
        except OSError as error:
            raise NodeFailed(f"no simgpud serves {root}: {error.strerror}; start the node first") from error
        yield peer


def pid_of(peer: socket.socket) -> int:
    """Returns the pid of the listening process, from SO_PEERCRED."""
    pid: int = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0]
    return pid


def _connect(peer: socket.socket, path: Path) -> None:
    """Connects through a descriptor of the folder, since a socket address holds only 107 bytes of path."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        peer.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _asked(peer: socket.socket, command: str, root: Path) -> str:
    try:
        peer.send(command.encode())
        answer = peer.recv(_LARGEST_ANSWER)
    except OSError as error:
        raise NodeFailed(f"simgpud of {root} does not answer {command!r}: {error.strerror or error}") from error
    if not answer:
        raise NodeFailed(f"simgpud of {root} ended while it was asked {command!r}")
    return answer.decode(errors="replace")
