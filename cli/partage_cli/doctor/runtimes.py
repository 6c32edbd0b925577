"""Who answers on a socket of the container runtime interface."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final, NamedTuple

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from partage_base.cri import CriError, UnaryClient
from partage_cli.doctor.local_node import Unseen, status_of
from partage_cli.tables import printable

_VERSION: Final = "/runtime.v1.RuntimeService/Version"
_NAME_FIELD: Final = 2
_VERSION_FIELD: Final = 3
_DEADLINE_S: Final = 2.0


class Runtime(NamedTuple):
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip() or "a runtime without a name"


def runtime_at(socket: Path) -> Runtime | Unseen:
    """Asks for the version; for two seconds at most."""
    status = status_of(socket)
    if isinstance(status, Unseen):
        return status
    if not os.access(socket, os.W_OK):
        return Unseen(socket, "may not be asked as this user")
    try:
        return _read(asyncio.run(_asked(socket)))
    except CriError as error:
        return Unseen(socket, str(error).removeprefix(f"{socket}: "), is_missing=True)


async def _asked(socket: Path) -> bytes:
    client = UnaryClient(socket)
    try:
        return await client.call(_VERSION, b"", deadline_s=_DEADLINE_S)
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
