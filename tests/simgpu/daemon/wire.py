"""simgpud's protocol as libraries use it: packets, their numbers, and a client."""

from __future__ import annotations

import mmap
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypedDict, Unpack

from simgpu.daemon.node_file import NodeFile, read
from support.sockets import connected

SOCKET: Final = "run/nvidia-persistenced/socket"
PROTOCOL: Final = 1
MIB: Final = 1 << 20
REQUEST: Final = struct.Struct("<IIIIQQ16s")
REPLY: Final = struct.Struct("<IIQQII16s")
PROCESS: Final = struct.Struct("<IIQQ")
_LARGEST: Final = 4096


class Ask(IntEnum):
    HELLO = 1
    ATTACH = 2
    DETACH = 3
    TAKE = 4
    GIVE = 5
    HOLD = 6
    SHARE = 7
    OPEN = 8
    PROCESSES = 9
    USED = 10
    LIMIT = 11
    CHECKPOINT = 12
    PAGE = 13


class Result(IntEnum):
    OK = 0
    NO_MEMORY = 1
    CARD_LOST = 2
    UNKNOWN = 3
    NO_ROOM = 4
    MISUSED = 5
    MADE_TO_FAIL = 6
    BROKEN = 7


CONTEXT, BLOCK, MANAGED, EXECUTABLE = 0, 1, 6, 10


@dataclass(frozen=True)
class Reply:
    """A reply of simgpud. The receiver closes `fds`."""

    result: Result
    row: int
    id: int
    size: int
    pid: int
    count: int
    token: bytes
    rest: bytes = b""
    fds: tuple[int, ...] = ()

    @property
    def processes(self) -> list[tuple[int, int, int, int]]:
        """Each as pid, row, bytes and busy_ns."""
        return [PROCESS.unpack_from(self.rest, at) for at in range(0, len(self.rest), PROCESS.size)]


class Fields(TypedDict, total=False):
    card: int
    kind: int
    id: int
    size: int
    token: bytes


def request(ask: int, **fields: Unpack[Fields]) -> bytes:
    card, kind, number = fields.get("card", 0), fields.get("kind", 0), fields.get("id", 0)
    return REQUEST.pack(ask, card, kind, 0, number, fields.get("size", 0), fields.get("token", b""))


def reply_of(packet: bytes, fds: Sequence[int] = ()) -> Reply:
    result, *numbers, token = REPLY.unpack_from(packet)
    row, number, amount, pid, count = numbers
    return Reply(Result(result), row, number, amount, pid, count, token, packet[REPLY.size :], tuple(fds))


class Caller:
    """This process as a user of cards, with both files mapped as libraries do."""

    def __init__(self, root: Path) -> None:
        self.peer = connected(root / SOCKET)
        hello = self.call(Ask.HELLO, id=PROTOCOL)
        assert hello.result == Result.OK, hello
        self.file, self.timelines = (_mapped(fd, write) for fd, write in zip(hello.fds, (False, True), strict=True))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        self.file.close()
        self.timelines.close()
        self.hang_up()  # last: a process with the files mapped still uses the card

    def hang_up(self) -> None:
        self.peer.close()

    def call(self, ask: int, *, fds: Sequence[int] = (), **fields: Unpack[Fields]) -> Reply:
        return self.exchange(request(ask, **fields), fds)

    def exchange(self, packet: bytes, fds: Sequence[int] = ()) -> Reply:
        socket.send_fds(self.peer, [packet], list(fds)) if fds else self.peer.send(packet)
        answer, got, _, _ = socket.recv_fds(self.peer, _LARGEST, 4)
        if not answer:
            raise ConnectionResetError("simgpud hung up")
        return reply_of(answer, got)

    def node(self) -> NodeFile:
        """The node file's current contents."""
        return read(self.file)


def _mapped(fd: int, write: bool) -> mmap.mmap:  # noqa: FBT001
    access = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
    try:
        return mmap.mmap(fd, 0, prot=access)
    finally:
        os.close(fd)
