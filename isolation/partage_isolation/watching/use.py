"""What a card says of the processes on it, and whoever can be asked for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from partage_plugins.vocabulary.names import CardId


@dataclass(frozen=True)
class CardUse:
    """One sample of one card, or of one MIG instance."""

    card: CardId
    taken_ns: int
    """CLOCK_MONOTONIC when NVML was called: what happened before that is in it."""
    processes: Mapping[int, int | None]
    """Bytes by pid, as the host numbers processes; None: the driver does not say of this one.

    One that is not named holds nothing.
    """


@dataclass(frozen=True)
class Blind:
    """A card of which the driver says of no process how much it holds, at a moment: nothing can be proved by it."""

    card: CardId
    taken_ns: int
    """As in `CardUse`."""


Sample = CardUse | Blind


class Nvml(Protocol):
    """Whoever can be asked."""

    async def use(self, card: CardId) -> Sample | None:
        """A sample that begins after this call; None where there is none within the deadline.

        Never blocks the loop, and raises nothing. Askers that wait for the same card are answered by one call.
        """
        ...
