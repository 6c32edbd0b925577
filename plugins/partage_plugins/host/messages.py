"""What parent and child say to each other.

Frames of a 4-byte length and msgpack; one reply to each question, matched by number.
Both ends come from one installation, so there is no version here. The parent distrusts the child: what it sends is
decoded into types, and whatever does not decode is a fault of the child.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec
from msgspec import Struct

from partage_plugins.sides.node import Adjusted
from partage_plugins.vocabulary.containers import Container
from partage_plugins.vocabulary.names import ContainerKey, Kind, NodeName, PluginName
from partage_plugins.vocabulary.node import NodeRole

MAX_FRAME_BYTES: Final = 32 * 1024 * 1024
HEADER_BYTES: Final = 4


class Start(Struct, frozen=True, kw_only=True, tag="start"):
    """First of all: load the plugins and begin."""

    id: int
    node: NodeName
    root: str
    paths: dict[str, str] | None
    """Plugins given by hand; None: those that are installed."""
    blocked: tuple[PluginName, ...]
    traced: bool
    driver_root: str = "/"
    host: str = "/"
    role: NodeRole = "crishim"


class Adjust(Struct, frozen=True, kw_only=True, tag="adjust"):
    """What must change in this container? Grants and parts are JSON by kind, as they were written."""

    id: int
    container: Container
    gen: int
    grants: dict[Kind, bytes]
    parts: dict[Kind, bytes]


class Removed(Struct, frozen=True, kw_only=True, tag="removed"):
    """Clean up after this container."""

    id: int
    key: ContainerKey


class Stop(Struct, frozen=True, kw_only=True, tag="stop"):
    id: int


class Started(Struct, frozen=True, kw_only=True, tag="started"):
    """What was loaded, and what was not and why."""

    id: int
    loaded: tuple[tuple[PluginName, str], ...]
    kinds: dict[Kind, PluginName]
    """Kinds with an owner in force."""
    faults: tuple[str, ...]
    blocked: tuple[PluginName, ...]
    unknown_blocked: tuple[PluginName, ...]


class AdjustedReply(Struct, frozen=True, kw_only=True, tag="adjusted"):
    id: int
    adjusted: Adjusted


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    id: int


class Refusal(Struct, frozen=True, kw_only=True, tag="refusal"):
    """No, in one sentence for the user."""

    id: int
    why: str


class Fault(Struct, frozen=True, kw_only=True, tag="fault"):
    """A plugin did what it may not."""

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
    """A message as it goes over the socket."""
    body = _ENCODER.encode(message)
    return len(body).to_bytes(HEADER_BYTES, "big") + body


class TooLarge(Exception):
    """A frame larger than its reader takes."""


def taken(incoming: bytearray, *, at_most: float = math.inf) -> bytes | None:
    """The first frame of what has come, which loses it, without its length; None where it is not whole yet."""
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
    """What the child answers; raises `msgspec.MsgspecError` for anything else."""
    return _REPLIES.decode(body)
