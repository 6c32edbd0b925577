"""Queries a CRI socket: name, version and configuration of the runtime behind it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from partage_base.cri import CriError, RuntimeClient, RuntimeConfig, UnaryClient
from partage_cli.doctor.local_node import Unseen, status_of
from partage_cli.tables import printable

_VERSION: Final = "/runtime.v1.RuntimeService/Version"
_NAME_FIELD: Final = 2
_VERSION_FIELD: Final = 3
_DEADLINE_S: Final = 2.0
T = TypeVar("T")


class Runtime(NamedTuple):
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip() or "a runtime without a name"


def runtime_at(socket: Path) -> Runtime | Unseen:
    """Ask for the version, for two seconds at most."""
    raw = _answer(socket, lambda client: client.call(_VERSION, b"", deadline_s=_DEADLINE_S))
    return raw if isinstance(raw, Unseen) else _read(raw)


def config_at(socket: Path) -> RuntimeConfig | Unseen:
    """Ask for the configuration, for two seconds at most."""
    return _answer(socket, lambda client: RuntimeClient(client, deadline_s=_DEADLINE_S).config())


def _answer(socket: Path, question: Callable[[UnaryClient], Coroutine[Any, Any, T]]) -> T | Unseen:
    status = status_of(socket)
    if isinstance(status, Unseen):
        return status
    if not os.access(socket, os.W_OK):
        return Unseen(socket, "may not be asked as this user")
    try:
        return asyncio.run(_asked(socket, question))
    except CriError as error:
        return Unseen(socket, str(error).removeprefix(f"{socket}: "), is_missing=True)


async def _asked(socket: Path, question: Callable[[UnaryClient], Coroutine[Any, Any, T]]) -> T:
    client = UnaryClient(socket)
    try:
        return await question(client)
    finally:
        client.close()


def _read(raw: bytes) -> Runtime:
    message = Empty()
    try:
        message.ParseFromString(raw)
    except DecodeError:
        return Runtime("", "")
    known = UnknownFieldSet(message)
    fields = {known[at].field_number: known[at].data for at in range(len(known))}
    return Runtime(_text(fields.get(_NAME_FIELD)), _text(fields.get(_VERSION_FIELD)))


def _text(data: object) -> str:
    text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    return printable(text)[:80]
