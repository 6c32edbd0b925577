"""What a child process that asks NVML and its parent say to each other: one message a packet. Pure.

What the child sends is outside data to the parent: a driver library that misbehaves may have written it. `Packets` are
the words of any such pair; here are those of the one that looks at cards. Its parent asks, at most one question of each
kind at a time, so an answer needs no number. The child also speaks unasked.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from partage_gpu.nvml.facts import NodeFacts, Sample, Trouble, Xid

MAX_BYTES: Final = 192 * 1024
"""Of a message; the kernel carries packets of up to 208 KiB. Sixteen cards take about a tenth of it."""
Q = TypeVar("Q")
"""What a child is asked."""
T = TypeVar("T")
"""What it says."""


class NotUnderstood(ValueError):
    """A packet that is no message."""


class Packets(Generic[Q, T]):
    """The words of one pair: a union of questions, and one of what the child says."""

    def __init__(self, question: Any, told: Any, *, form: ModuleType = msgspec.json) -> None:  # noqa: ANN401
        self._encoder, self._question, self._told = form.Encoder(), form.Decoder(question), form.Decoder(told)

    def encoded(self, message: Q | T | Ended) -> bytes:
        packet: bytes = self._encoder.encode(message)
        if len(packet) > MAX_BYTES:
            raise NotUnderstood(f"a message of {len(packet)} bytes; allowed: {MAX_BYTES}")
        return packet

    def told(self, packet: bytes) -> T:
        """What the child said; raises `NotUnderstood`."""
        said: T = _decoded(packet, self._told)
        return said

    def question(self, packet: bytes) -> Q:
        """What the parent asks; raises `NotUnderstood`."""
        asked: Q = _decoded(packet, self._question)
        return asked


def _decoded(packet: bytes, decoder: Any) -> Any:  # noqa: ANN401  of either form
    try:
        return decoder.decode(packet)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotUnderstood(str(error)) from error


class Ended(Struct, frozen=True, tag="ended"):
    """This process has no driver to ask, or not the same one any more: its last words."""

    trouble: Trouble


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


Question = AskLook | AskSamples
Answer = Looked | Sampled
Told = Opened | Working | Looked | Sampled | Changed | Reported | Ended
WORDS: Final = Packets[Question, Told](Question, Told)
