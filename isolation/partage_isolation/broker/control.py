"""The socket on which root asks: one line in, one line out, then the connection ends.

Whoever connects is root on the node, by the kernel's word: the file's mode alone would not do, since a container may
have it mounted.
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

from partage_base.listener import listen
from partage_isolation.control.codec import MAX_QUESTION_BYTES, answer_line, read_question
from partage_isolation.control.questions import (
    BROKER_SOCKET,
    Answer,
    LimitsSet,
    No,
    Prepare,
    Prepared,
    Question,
    SetLimits,
    Told,
)
from partage_isolation.errors import NoFolder
from partage_plugins.errors import PartageError

_QUESTION_WITHIN_S: Final = 5.0
_CREDENTIALS: Final = struct.Struct("3i")
_LONGEST_WHY: Final = 1024
_log = structlog.get_logger()


class Answers(Protocol):
    """Who knows."""

    def prepare(self, question: Prepare) -> Prepared:
        """A container is about to be created."""
        ...

    async def set_limits(self, question: SetLimits) -> LimitsSet:
        """A lower limit."""
        ...


class Control:
    """Listens until it is closed."""

    def __init__(self, root: Path, answers: Answers, *, tell: Callable[[], Told]) -> None:
        self._path, self._answers, self._tell = root / BROKER_SOCKET, answers, tell
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Raises `NoFolder`."""
        try:
            self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            listening = listen(self._path)
        except OSError as error:
            raise NoFolder(f"cannot listen on {self._path}: {error.strerror or error}") from error
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=MAX_QUESTION_BYTES)

    async def close(self) -> None:
        """Answers nobody any more; the name stays for the next broker to take over."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_QUESTION_WITHIN_S):
                writer.write(answer_line(await self._answer(reader, writer)))
                await writer.drain()
        except (TimeoutError, OSError, ValueError):  # too slow, gone, or a line that is too long
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
        peer: socket.socket = writer.get_extra_info("socket")
        line = await reader.readline()
        user = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
        if user != os.geteuid():
            return No(why="only root on the node may ask the broker")
        try:
            return await self._answered(read_question(line))
        except PartageError as error:
            return No(why=str(error)[:_LONGEST_WHY])
        except Exception as error:  # noqa: BLE001  a defect costs its question, which the asker must hear of
            _log.exception("a question could not be answered; this is a defect, please report it")
            return No(why=f"the broker failed at this ({type(error).__name__}); see partage-broker's log")

    async def _answered(self, question: Question) -> Answer:
        match question:
            case Prepare():
                return self._answers.prepare(question)
            case SetLimits():
                return await self._answers.set_limits(question)
            case _:
                return self._tell()
