"""The socket for `partage-oci`: one line in, one line out, then the connection is closed.

The kernel identifies the connecting process, and only root is answered. Requests are handled in order of arrival.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import structlog

from partage_base.daemon.errors import CannotListen
from partage_base.listener import listen
from partage_base.peers import NoProcess, Peer, peer_of
from partage_oci.messages import (
    MAX_LINE_BYTES,
    Answer,
    Create,
    Delete,
    Go,
    Tell,
    Told,
    Wait,
    Waits,
    answer_line,
    read_question,
    refusal,
)
from partage_plugins.api.places import OCI_SOCKET
from partage_plugins.errors import PartageError, PluginBroken, Refused

MAX_CONNECTIONS: Final = 128
"""Excluding connections that wait for room."""
_QUESTION_WITHIN_S: Final = 5.0
_ANSWER_WITHIN_S: Final = 60.0
"""Includes the wait for other requests; less than the minutes that engines allow for a create."""
_CREDENTIALS: Final = struct.Struct("3i")
_log = structlog.get_logger()


class Answers(Protocol):
    async def create(self, question: Create, peer: Peer) -> Go:
        """Raises a `PartageError` or `OSError` to refuse."""
        ...

    def delete(self, question: Delete, peer: Peer) -> None: ...

    def tell(self) -> Told: ...

    async def wait(self, question: Wait, waits: Callable[[str], None]) -> None:
        """Raises a `PartageError` to refuse."""
        ...


class Server:
    def __init__(self, answers: Answers, *, broken: Callable[[str], None]) -> None:
        """`broken` is called with the reason if nothing can be placed any more, and ends the daemon."""
        self._answers, self._broken = answers, broken
        self._serving: set[asyncio.Task[None]] = set()
        self._waiting = 0
        self._server: asyncio.Server | None = None

    async def open(self, root: Path) -> None:
        """Listen; the socket file stays for the next agent. Raises `CannotListen`."""
        path = root / OCI_SOCKET
        try:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            listening = listen(path)
        except OSError as error:
            raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from error
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, limit=MAX_LINE_BYTES)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a coroutine is run by one
        self._serving.add(task)
        try:
            with contextlib.suppress(OSError, NoProcess, asyncio.CancelledError):  # it disconnected, or the agent ends
                await self._serve(reader, writer)
        finally:
            self._serving.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = peer_of(writer.get_extra_info("socket"))
        try:
            answer = await self._answer(reader, writer, peer)
        finally:
            os.close(peer.pidfd)
        if answer is not None:
            writer.write(answer_line(answer))
            await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer) -> Answer | None:
        try:
            line = await _line(reader)
            self._require_welcome(writer.get_extra_info("socket"))
            question = read_question(line)
            match question:
                case Delete():
                    self._answers.delete(question, peer)
                    return None
                case Tell():
                    return self._answers.tell()
                case Wait():
                    return await self._waited(question, reader, writer)
                case Create():
                    async with asyncio.timeout(_ANSWER_WITHIN_S):
                        return await self._answers.create(question, peer)
        except Exception as error:  # noqa: BLE001  a defect costs its question, which the asker must hear of
            return refusal(self._why(error))

    async def _waited(
        self, question: Wait, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Answer | None:
        """Wait as long as the client keeps the connection open."""

        def waits(why: str) -> None:
            if writer.transport.get_write_buffer_size() < MAX_LINE_BYTES:  # skip clients that do not read
                writer.write(answer_line(Waits(why=why)))

        self._waiting += 1
        waited = asyncio.create_task(self._answers.wait(question, waits), name="waiting for room")
        left = asyncio.create_task(reader.read(1), name="whether it still waits")
        try:
            await asyncio.wait({waited, left}, return_when=asyncio.FIRST_COMPLETED)
            if not waited.done():
                return None
            await waited
            return Go()
        finally:
            self._waiting -= 1
            for task in (waited, left):
                task.cancel()
            await asyncio.gather(waited, left, return_exceptions=True)

    def _require_welcome(self, sock: socket.socket) -> None:
        user = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
        if user != os.geteuid():
            raise Refused("only root on this machine may ask the agent")
        if len(self._serving) - self._waiting > MAX_CONNECTIONS:
            raise Refused(f"{MAX_CONNECTIONS} containers are being created already; try again")

    def _why(self, error: Exception) -> str:
        match error:
            case TimeoutError():
                return "it took too long; see partage-agent's log, and try again"
            case PluginBroken():
                self._broken(str(error))
                return f"{error}; partage-agent starts again, try again then"
            case PartageError():
                return str(error)
            case OSError():
                return f"{error.filename}: {error.strerror}; make room there, or see partage-agent's log"
            case _:
                what = "a question could not be answered; this is a defect, please report it"
                _log.error(what, exc_info=error)
                return f"the agent failed at this ({type(error).__name__}); see partage-agent's log"


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The request; raises `Refused` for a line without an end."""
    try:
        async with asyncio.timeout(_QUESTION_WITHIN_S):
            return await reader.readline()
    except ValueError:
        raise Refused(f"a question is at most {MAX_LINE_BYTES} bytes long, with its end of line") from None
