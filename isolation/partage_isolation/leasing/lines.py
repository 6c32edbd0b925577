"""What is written into lines: each write has an epoch of its own, and each is told. Pure."""

from __future__ import annotations

from typing import Final

from partage_isolation.leasing.acts import Hint, Write
from partage_isolation.leasing.life import LINES
from partage_isolation.leasing.seats import Seat
from partage_isolation.leasing.words import LineState, after
from partage_plugins.vocabulary.names import ContainerKey

UNIT_NS: Final = 1 << 14
"""A deadline nearer than this may be one that has passed."""


class Lines:
    """What is to be done, until it is taken."""

    __slots__ = ("_acts",)

    def __init__(self) -> None:
        self._acts: list[Write | Hint] = []

    def take(self) -> list[Write | Hint]:
        """All of it, once."""
        acts, self._acts = self._acts, []
        return acts

    def forget(self, key: ContainerKey) -> None:
        """Nobody is left to read it."""
        self._acts = [act for act in self._acts if act.key != key]

    def first(self, seat: Seat) -> None:
        """A line that nobody has read yet."""
        self._acts.append(Write(seat.key, seat.card_id, LineState.CLOSED, seat.epoch, 0))

    def say(self, seat: Seat, deadline: int = 0) -> None:
        """What the lease is now. A deadline is rounded as the line does it, so that both sides mean the same."""
        seat.epoch = after(seat.epoch)
        seat.line = LINES[seat.life]
        seat.deadline = deadline - deadline % UNIT_NS
        key, card = seat.key, seat.card.id
        self._acts += (Write(key, card, seat.line, seat.epoch, seat.deadline), Hint(key, card, seat.epoch))
