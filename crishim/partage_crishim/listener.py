"""The socket that kubelet connects to: one from systemd, or our own, which replaces the previous one by a rename.

A new crishim binds to a temporary path, listens, and renames onto the real one, so some process listens on the path at
every moment. A restart that starts the new process before it stops the old one therefore has no gap: kubelet's next
connection goes to the new process, while the old one serves the connections that it has. A crishim that finds another
socket at the path has been replaced, and does not remove it at exit. A client of this socket acts as root on the node,
so only the owner may open it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from partage_base.daemon.errors import CannotListen
from partage_base.listener import listen as listen_aside

_FIRST_FROM_SYSTEMD: Final = 3
_log = structlog.get_logger()


@dataclass(frozen=True)
class Listener:
    """A listening socket, and its path if we own the path."""

    socket: socket.socket
    path: Path | None = None
    identity: tuple[int, int] | None = None

    @property
    def is_replaced(self) -> bool:
        """Whether the path now leads to another socket, or to nothing."""
        return self.path is not None and _identity(self.path) != self.identity

    def close(self) -> None:
        """Stop listening, and remove the path unless another process has taken it."""
        if self.path is not None and not self.is_replaced:
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        self.socket.close()


def listen(path: Path, environment: Mapping[str, str]) -> Listener:
    """The socket from systemd if it gave a valid one, else our own at `path`; raises `CannotListen`."""
    try:
        given = _given(environment)
    except CannotListen as error:
        _log.error("socket from systemd is unusable, creating our own", why=str(error))
        given = None
    return given or _own(path)


def _given(environment: Mapping[str, str]) -> Listener | None:
    """The one descriptor passed to this process: see sd_listen_fds(3)."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return None
    if environment.get("LISTEN_FDS") != "1":
        raise CannotListen(f"systemd gave {environment.get('LISTEN_FDS')} sockets; crishim's unit must have one")
    given = socket.socket(fileno=_FIRST_FROM_SYSTEMD)
    if given.family != socket.AF_UNIX or not given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise CannotListen("systemd gave a socket that is no listening unix socket; see ListenStream= in its unit")
    given.set_inheritable(False)
    given.setblocking(False)
    return Listener(given)


def _own(path: Path) -> Listener:
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with _alone(path):
            _refuse_what_is_no_socket(path)
            ours = listen_aside(path)
            return Listener(ours, path, _identity(path))
    except OSError as error:
        raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from error


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """If two processes start at once, the second takes over from the first."""
    with path.with_name(f"{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _refuse_what_is_no_socket(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise CannotListen(f"cannot listen on {path}: something that is no socket is there; remove it")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
