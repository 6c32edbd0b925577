"""Speaks to a running simgpud: text commands over the control socket of its driver root, and who it is."""

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
    """Sends one command and returns what follows `ok`: nothing, or what was asked for."""
    with connected(root) as peer:
        answer = _asked(peer, command, root)
    if answer.startswith(_REFUSED):
        raise ControlRefused(answer.removeprefix(_REFUSED).rstrip())
    if not answer.startswith("ok"):
        raise NodeFailed(f"simgpud of {root} answered {answer[:80]!r} to {command!r}; is it of this version?")
    return answer.removeprefix("ok").strip("\n").removeprefix(" ")


@contextmanager
def connected(root: Path) -> Generator[socket.socket]:
    """A connection to the simgpud that serves this driver root now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(_ANSWER_S)
        try:
            _connect(peer, root / SOCKET)
        except OSError as error:
            raise NodeFailed(f"no simgpud serves {root}: {error.strerror}; start the node first") from error
        yield peer


def pid_of(peer: socket.socket) -> int:
    """The process that listens at the other end, by the kernel's word."""
    pid: int = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0]
    return pid


def _connect(peer: socket.socket, path: Path) -> None:
    """Through a descriptor of its folder: an address holds only 107 bytes of path."""
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
