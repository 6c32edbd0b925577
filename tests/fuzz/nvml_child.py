"""Anything that the process that calls the driver sends is decoded or refused, and no card that answers is lost.

It has the driver's library loaded, so this is untrusted input. The input is cut into packets at line feeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fuzz import _codecs
from partage_gpu.nvml import wire
from partage_gpu.nvml.conversation import Conversation
from partage_gpu.nvml.driver import with_known
from partage_gpu.nvml.facts import NodeFacts, SilentCard, Trouble, Xid
from unit.gpu_discovery.nvml.made import card, node

_LOST: Final = SilentCard(index=0, fault="GPU is lost (15)")
_STORY: Final[tuple[wire.Told, ...]] = (
    wire.Opened(),
    wire.SnapshotTaken(node(card("a", 0, links={"b": 18}), card("b", 1))),
    wire.Reported(Xid(uuid="a", number=79)),
    wire.Changed(),
    wire.SnapshotTaken(node(card("b", 1), silent=(_LOST,))),
    wire.Sampled(()),
    wire.Working(),
    wire.Ended(Trouble(kind="failed", sentence="gone")),
)
SEEDS: Final = (b"", *map(wire.WORDS.encoded, _STORY), b"\n".join(map(wire.WORDS.encoded, _STORY)))
DICTIONARY: Final = (*_codecs.JSON_WORDS, b"\n", b'"type":', b"looked", b"facts", b"silent", b"index")


class _Child:
    def __init__(self, *, hears: Callable[[wire.Told], None], ends: Callable[[str], None]) -> None:
        self.started = time.monotonic()
        self.says, self.dies = hears, ends

    def send(self, question: wire.Question) -> None:
        """Discards the question."""

    def kill(self) -> None:
        """Does nothing."""


def target(data: bytes) -> str:
    """Feeds the packets in turn, with a question before each."""
    talk = Conversation(_Child, reported=lambda _: None, wake=lambda: None)
    known: NodeFacts | None = None
    said = "nothing"
    for packet in data.split(b"\n"):
        talk.ask(wire.AskSnapshot(), 0.0)
        try:
            told = wire.WORDS.told(packet)
        except wire.NotUnderstood:
            return "refused"
        said = type(told).__name__
        talk.process.says(told)
        answer = talk.ask(wire.AskSnapshot(), 0.0)
        if isinstance(answer, wire.SnapshotTaken):
            known = _remembered(answer.facts, known)
    talk.process.dies("ended")
    if talk.ask(wire.AskSnapshot(), float("inf")) not in (None, *_answers(data)):
        raise AssertionError("an answer came from nowhere")
    return said


def _remembered(facts: NodeFacts, known: NodeFacts | None) -> NodeFacts:
    found = with_known(facts, known)
    if not all(one in found.cards for one in facts.cards):
        raise AssertionError("a card that answers got lost")
    if len(found.cards) + len(found.silent) != len(facts.cards) + len(facts.silent):
        raise AssertionError("there are more or fewer cards than were told")
    return found


def _answers(data: bytes) -> list[wire.Told]:
    return [wire.WORDS.told(packet) for packet in data.split(b"\n")]
