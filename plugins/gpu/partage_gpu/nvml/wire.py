"""The protocol between a child process that queries NVML and its parent: one message a packet. Pure.

The parent treats the child's messages as external data: a misbehaving driver library may have written them. `Packets`
is generic; the messages here are those of the child that monitors cards. Its parent sends at most one question of each
kind at a time, so an answer needs no number. The child also sends messages unasked.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from partage_gpu.nvml.facts import NodeFacts, Sample, Trouble, Xid

MAX_BYTES: Final = 192 * 1024
"""Size of a message; the kernel carries packets of up to 208 KiB. Sixteen cards take about a tenth of it."""
Q = TypeVar("Q")
"""Questions to a child."""
T = TypeVar("T")
"""Messages of a child."""


class NotUnderstood(ValueError):
    """A packet that is no valid message."""


class Packets(Generic[Q, T]):
    """The codec of one protocol: a union of questions, and one of the child's messages."""

    def __init__(self, question: Any, told: Any, *, form: ModuleType = msgspec.json) -> None:  # noqa: ANN401
        self._encoder, self._question, self._told = form.Encoder(), form.Decoder(question), form.Decoder(told)

    def encoded(self, message: Q | T | Ended) -> bytes:
        packet: bytes = self._encoder.encode(message)
        if len(packet) > MAX_BYTES:
            raise NotUnderstood(f"a message of {len(packet)} bytes; allowed: {MAX_BYTES}")
        return packet

    def told(self, packet: bytes) -> T:
        """Decodes a message of the child; raises `NotUnderstood`."""
        said: T = _decoded(packet, self._told)
        return said

    def question(self, packet: bytes) -> Q:
        """Decodes a question of the parent; raises `NotUnderstood`."""
        asked: Q = _decoded(packet, self._question)
        return asked


def _decoded(packet: bytes, decoder: Any) -> Any:  # noqa: ANN401  of either form
    try:
        return decoder.decode(packet)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotUnderstood(str(error)) from error


class Ended(Struct, frozen=True, tag="ended"):
    """The last message of a child whose driver is missing or was replaced."""

    trouble: Trouble


class AskSnapshot(Struct, frozen=True, tag="look"):
    """Asks for a full look at the cards."""


class AskSamples(Struct, frozen=True, tag="samples"):
    """Asks for the cards' measurements."""


class Opened(Struct, frozen=True, tag="ready"):
    """The driver is open and its cards were found: from now on answers come quickly."""


class Working(Struct, frozen=True, tag="working"):
    """The driver is slow, but calls return."""


class SnapshotTaken(Struct, frozen=True, tag="looked"):
    facts: NodeFacts


class Sampled(Struct, frozen=True, tag="sampled"):
    samples: tuple[Sample, ...]


class Changed(Struct, frozen=True, tag="changed"):
    """A vital sign has changed: a look will show something new."""


class Reported(Struct, frozen=True, tag="reported"):
    """The driver reported an error of a card."""

    xid: Xid


Question = AskSnapshot | AskSamples
Answer = SnapshotTaken | Sampled
Told = Opened | Working | SnapshotTaken | Sampled | Changed | Reported | Ended
WORDS: Final = Packets[Question, Told](Question, Told)
