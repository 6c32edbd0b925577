"""What the child process and its parent say to each other: one message a packet, as JSON. Pure.

The parent asks, at most one question of each kind at a time, so an answer needs no number. The child also speaks
unasked. What it sends is outside data to the parent: a driver library that misbehaves may have written it.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from partage_gpu.nvml.facts import NodeFacts, Sample, Trouble, Xid

MAX_BYTES: Final = 192 * 1024
"""Of a message; the kernel carries packets of up to 208 KiB. Sixteen cards take about a tenth of it."""


class AskLook(Struct, frozen=True, tag="look"):
    """Asks for all that a full look at the cards shows."""


class AskSamples(Struct, frozen=True, tag="samples"):
    """Asks for measurements: how the cards fare."""


class Opened(Struct, frozen=True, tag="ready"):
    """The driver is open and its cards were found: from now on answers come quickly."""


class Working(Struct, frozen=True, tag="working"):
    """The driver is slow, but calls return."""


class Looked(Struct, frozen=True, tag="looked"):
    facts: NodeFacts


class Sampled(Struct, frozen=True, tag="sampled"):
    samples: tuple[Sample, ...]


class Changed(Struct, frozen=True, tag="changed"):
    """A vital sign is not what it was: a look will show something new."""


class Reported(Struct, frozen=True, tag="reported"):
    """The driver reported an error of a card."""

    xid: Xid


class Ended(Struct, frozen=True, tag="ended"):
    """This process has no driver to ask, or not the same one any more: its last words."""

    trouble: Trouble


Question = AskLook | AskSamples
Answer = Looked | Sampled
Told = Opened | Working | Looked | Sampled | Changed | Reported | Ended


class NotUnderstood(ValueError):
    """A packet that is no message."""


_M = TypeVar("_M")
_encoder: Final = msgspec.json.Encoder()
_told: Final[msgspec.json.Decoder[Told]] = msgspec.json.Decoder(Told)
_question: Final[msgspec.json.Decoder[Question]] = msgspec.json.Decoder(Question)


def encoded(message: Question | Told) -> bytes:
    packet = _encoder.encode(message)
    if len(packet) > MAX_BYTES:
        raise NotUnderstood(f"a message of {len(packet)} bytes; allowed: {MAX_BYTES}")
    return packet


def told(packet: bytes) -> Told:
    return _decoded(packet, _told)


def question(packet: bytes) -> Question:
    return _decoded(packet, _question)


def _decoded(packet: bytes, decoder: msgspec.json.Decoder[_M]) -> _M:
    try:
        return decoder.decode(packet)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotUnderstood(str(error)) from error
