"""A manager that says what a test wrote down, on a real socket: a thread for each connection, as many as come."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Final

from partage_cli.machine.wire.messages import (
    END,
    MANAGER_SOCKET,
    Answer,
    ContainerStatus,
    Grant,
    Hello,
    PodStatus,
    Question,
    answer_line,
    read_question,
)

Said = Answer | bytes
Script = Callable[[Question], Iterable[Said]]
"""What is answered; bytes go out as they are. It may wait for events of the test's between two answers."""
HELLO: Final = Hello(manager="0.1.0", simulated=False)
NOW_NS: Final = 1_795_000_000_000_000_000


class Hangup(Exception):
    """Raised by a script: the manager closes the connection."""


class ScriptedManager:
    def __init__(self, root: Path, script: Script, hello: Iterable[Said]) -> None:
        self.root = root
        self.asked: list[Question] = []
        self._script, self._hello = script, tuple(hello)
        path = root / MANAGER_SOCKET
        path.parent.mkdir(parents=True, exist_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._peers: list[socket.socket] = []
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for peer in self._peers:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        self._listener.close()
        (self.root / MANAGER_SOCKET).unlink()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            self._peers.append(peer)
            thread = threading.Thread(target=self._serve, args=(peer,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError, Hangup):
            for said in self._hello:
                peer.sendall(_line(said))
            with peer.makefile("rb") as lines:
                for line in lines:
                    question = read_question(line.removesuffix(END))
                    self.asked.append(question)
                    for said in self._script(question):
                        peer.sendall(_line(said))


@contextlib.contextmanager
def scripted(script: Script, *hello: Said) -> Generator[ScriptedManager]:
    """In a folder whose path is short enough for a socket's address."""
    with tempfile.TemporaryDirectory(prefix="partage-") as folder:
        manager = ScriptedManager(Path(folder), script, hello or (HELLO,))
        try:
            yield manager
        finally:
            manager.close()


def pod(name: str = "train", **more: object) -> PodStatus:
    """One that runs, with 30 % of card 1; `more` is of the pod."""
    grant = Grant(card="GPU-6f0c1234-aaaa", index=1, share_milli=300, memory_bytes=4 << 30, used_bytes=1 << 30)
    container = ContainerStatus(
        name="main", image="busybox", state="running", started_ns=NOW_NS - 180 * 10**9, grants=(grant,)
    )
    fields: dict[str, object] = {
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "phase": "running",
        "created_ns": NOW_NS - 200 * 10**9,
        "restart": "no",
        "containers": (container,),
    }
    return PodStatus(name=name, **(fields | more))  # type: ignore[arg-type]  # a test's own words


def _line(said: Said) -> bytes:
    return said if isinstance(said, bytes) else answer_line(said)
