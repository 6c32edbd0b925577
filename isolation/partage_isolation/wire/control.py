"""The control socket for root: one line in, one line out, then the connection is closed.

The kernel reports the peer's user, and only root is served. The mode of the file is not enough, since a container may
have it mounted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from partage_base.listener import listen
from partage_isolation.errors import NoFolder
from partage_isolation.wire.messages import MAX_QUESTION_BYTES, Answer, Question, Rejection, answer_line, read_question
from partage_plugins.api.places import BROKER_SOCKET
from partage_plugins.errors import PartageError

_QUESTION_WITHIN_S: Final = 5.0
_CREDENTIALS: Final = struct.Struct("3i")
_LONGEST_WHY: Final = 1024
_log = structlog.get_logger()

Answering = Callable[[Question], Awaitable[Answer]]
"""Raises a `PartageError` for a request that fails; see `Broker.answer`."""


async def control_server(root: Path, answering: Answering) -> asyncio.Server:
    """Listen on the control socket; its file stays for the next broker to take over. Raises `NoFolder`."""
    path = root / BROKER_SOCKET
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        listening = listen(path)
    except OSError as error:
        raise NoFolder(f"cannot listen on {path}: {error.strerror or error}") from error
    serve = partial(_serve, answering)
    return await asyncio.start_unix_server(serve, sock=listening, limit=MAX_QUESTION_BYTES)


async def _serve(answering: Answering, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_QUESTION_WITHIN_S):
            writer.write(answer_line(await _answer(answering, reader, writer)))
            await writer.drain()
    except (TimeoutError, OSError, ValueError):  # too slow, gone, or a line that is too long
        pass
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _answer(answering: Answering, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
    peer: socket.socket = writer.get_extra_info("socket")
    line = await reader.readline()
    user = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]
    if user != os.geteuid():
        return Rejection(why="only root on the node may ask the broker")
    try:
        return await answering(read_question(line))
    except PartageError as error:
        return Rejection(why=str(error)[:_LONGEST_WHY])
    except Exception as error:  # noqa: BLE001  a defect costs its question, which the asker must hear of
        _log.exception("internal error in partage-broker while handling a request; please report it")
        return Rejection(why=f"the broker failed at this ({type(error).__name__}); see partage-broker's log")
