"""The messages between parent and child.

Frames of a 4-byte length and msgpack; one reply to each question, matched by number.

Both ends come from one installation, so the protocol has no version. The parent does not trust the child: its messages
are decoded into types, and a message that does not decode is an error of the child.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec
from msgspec import Struct

from partage_plugins.api.containers import Container
from partage_plugins.api.names import ContainerKey, Kind, NodeName, PluginName
from partage_plugins.api.node import NodeRole
from partage_plugins.framework.node import Adjusted

MAX_FRAME_BYTES: Final = 32 * 1024 * 1024
HEADER_BYTES: Final = 4


class Start(Struct, frozen=True, kw_only=True, tag="start"):
    """The first message: load and start the plugins."""

    id: int
    node: NodeName
    root: str
    paths: dict[str, str] | None
    """Plugins as `module:Class` by name; None: the installed ones."""
    blocked: tuple[PluginName, ...]
    traced: bool
    driver_root: str = "/"
    host: str = "/"
    role: NodeRole = "crishim"


class Adjust(Struct, frozen=True, kw_only=True, tag="adjust"):
    """Asks for the changes to a container. Grants and parts are JSON by kind, as they were written."""

    id: int
    container: Container
    gen: int
    grants: dict[Kind, bytes]
    parts: dict[Kind, bytes]
    suspended: bool | None = None


class Removed(Struct, frozen=True, kw_only=True, tag="removed"):
    """Asks to clean up after a container."""

    id: int
    key: ContainerKey


class Stop(Struct, frozen=True, kw_only=True, tag="stop"):
    id: int


class Started(Struct, frozen=True, kw_only=True, tag="started"):
    """Which plugins were loaded, and the errors of the others."""

    id: int
    loaded: tuple[tuple[PluginName, str], ...]
    kinds: dict[Kind, PluginName]
    """Kinds with a working owner."""
    faults: tuple[str, ...]
    blocked: tuple[PluginName, ...]
    unknown_blocked: tuple[PluginName, ...]


class AdjustedReply(Struct, frozen=True, kw_only=True, tag="adjusted"):
    id: int
    adjusted: Adjusted


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    id: int


class Refusal(Struct, frozen=True, kw_only=True, tag="refusal"):
    """A refusal, in one sentence for the user."""

    id: int
    why: str


class Fault(Struct, frozen=True, kw_only=True, tag="fault"):
    """A plugin violated its contract."""

    id: int
    error: Literal["PluginFailed", "PluginNonsense", "AdjustmentConflict"]
    plugin: str
    hook: str
    why: str
    detail: str
    traceback: str


Question = Start | Adjust | Removed | Stop
Reply = Started | AdjustedReply | Done | Refusal | Fault

_ENCODER: Final = msgspec.msgpack.Encoder()
_QUESTIONS: Final[msgspec.msgpack.Decoder[Question]] = msgspec.msgpack.Decoder(Question)
_REPLIES: Final[msgspec.msgpack.Decoder[Reply]] = msgspec.msgpack.Decoder(Reply)


def framed(message: Question | Reply) -> bytes:
    """A message with its frame header."""
    body = _ENCODER.encode(message)
    return len(body).to_bytes(HEADER_BYTES, "big") + body


class TooLarge(Exception):
    """A frame larger than its reader accepts."""


def taken(incoming: bytearray, *, at_most: float = math.inf) -> bytes | None:
    """Removes the first frame from `incoming` and returns its body; None if it is not complete yet."""
    if len(incoming) < HEADER_BYTES:
        return None
    size = int.from_bytes(incoming[:HEADER_BYTES], "big")
    if size > at_most:
        raise TooLarge(f"a frame of {size} bytes")
    end = HEADER_BYTES + size
    if len(incoming) < end:
        return None
    body = bytes(memoryview(incoming)[HEADER_BYTES:end])
    del incoming[:end]
    return body


def decode_question(body: bytes | memoryview) -> Question:
    return _QUESTIONS.decode(body)


def decode_reply(body: bytes | memoryview) -> Reply:
    """Decodes a message of the child; raises `msgspec.MsgspecError` if it is not valid."""
    return _REPLIES.decode(body)
