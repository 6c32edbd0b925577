"""The socket on which the manager is asked: lines in, lines out, one question at a time on each connection."""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import structlog

from partage_base.daemon.errors import BadConfiguration, CannotListen
from partage_base.listener import listen
from partage_cli.machine.manager.errors import Objection, objection_of
from partage_cli.machine.wire.messages import (
    END,
    MANAGER_SOCKET,
    MAX_CONNECTIONS,
    MAX_QUESTION_BYTES,
    Answer,
    Hello,
    Last,
    No,
    Question,
    answer_line,
    read_question,
)
from partage_plugins.errors import DecodeError, PartageError

_MOST_UNREAD_BYTES: Final = 256 << 10
"""That wait for a client to read them; beyond, its question waits too."""
_log = structlog.get_logger()

Say = Callable[[Answer], Awaitable[None]]


class Answers(Protocol):
    async def answer(self, question: Question, say: Say) -> Last:
        """Says what there is to say on the way, and returns the last word. Raises `PartageError` for a no."""
        ...


class Server:
    def __init__(self, hello: Hello, answers: Answers) -> None:
        self._hello, self._answers = hello, answers
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, root: Path, group: str) -> None:
        """Listens; the socket's name stays for the next manager. Raises `CannotListen` and `BadConfiguration`."""
        path = root / MANAGER_SOCKET
        try:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            listening = listen(path)
            if group:
                os.chown(path, -1, grp.getgrnam(group).gr_gid)
                path.chmod(0o660)
        except KeyError:
            raise BadConfiguration(f"group is {group}, which this machine does not have") from None
        except OSError as error:
            raise CannotListen(f"cannot listen on {path}: {error.strerror or error}") from error
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, limit=MAX_QUESTION_BYTES)

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
            with contextlib.suppress(OSError, asyncio.CancelledError):  # it went, or the manager ends
                await self._serve(reader, writer)
        finally:
            self._serving.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=_MOST_UNREAD_BYTES)
        await _say(writer, self._hello)
        if len(self._serving) > MAX_CONNECTIONS:
            why = f"{MAX_CONNECTIONS} connections are open already; close one, or try later"
            await _say(writer, No(code="too-many", why=why))
            await _flushed(writer)
            return
        await _Talk(self._answers, reader, writer).go()


class _Talk:
    """With one client, until it goes."""

    def __init__(self, answers: Answers, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._answers, self._reader, self._writer = answers, reader, writer

    async def go(self) -> None:
        coming = asyncio.create_task(self._line())
        try:
            while line := await coming:
                coming = asyncio.create_task(self._line())
                if not await self._answered(line, coming):
                    return
        except ValueError:  # a line without an end, longer than the limit
            why = f"a question is at most {MAX_QUESTION_BYTES} bytes long, with its end of line"
            await _say(self._writer, No(code="bad-question", why=why))
            await _flushed(self._writer)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _line(self) -> bytes:
        """Empty at the end; what has no end of line is no question."""
        line = await self._reader.readline()
        return line if line.endswith(END) else b""

    async def _answered(self, line: bytes, coming: asyncio.Task[bytes]) -> bool:
        """Whether the client heard it; it gives the question up by going."""
        answering = asyncio.create_task(self._answer(line))
        try:
            await asyncio.wait({answering, coming}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and _is_end(coming):
                return False
            await answering
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
        return True

    async def _answer(self, line: bytes) -> None:
        async def say(answer: Answer) -> None:
            await _say(self._writer, answer)

        try:
            last: Last = await self._answers.answer(read_question(line), say)
        except DecodeError as error:
            last = No(code="bad-question", why=str(error))
        except PartageError as error:
            last = objection_of(error).answer
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  a defect costs its question, which the asker must hear of
            _log.exception("a question could not be answered; this is a defect, please report it")
            last = Objection("runtime", f"the manager failed at this ({type(error).__name__}); see its log").answer
        await say(last)


def _is_end(coming: asyncio.Task[bytes]) -> bool:
    error = coming.exception()
    return isinstance(error, OSError) or (error is None and not coming.result())


async def _say(writer: asyncio.StreamWriter, answer: Answer) -> None:
    if writer.is_closing():
        raise ConnectionResetError
    writer.write(answer_line(answer))
    await writer.drain()


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """What was said last is read, before the connection is gone."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()
