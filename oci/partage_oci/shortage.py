"""Explains why a pod does not fit on this machine's cards, in a sentence for its owner. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from partage_plugins.api import Card, GpuRequest
from partage_plugins.api.card_memory import Promised
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.reasons import Reason

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30


class NoRoom(Struct, frozen=True):
    why: str
    lasts: bool
    """It would not fit even after other pods have ended."""


class CardRoom(Struct, frozen=True):
    """A card, and what pods hold of it."""

    card: Card
    given_milli: int
    promised: Promised
    """Memory promised to pods."""

    @property
    def free_milli(self) -> int:
        return max(0, WHOLE_MILLI - self.given_milli)

    def free_bytes(self, *, movable: bool) -> int:
        """Free memory for a movable or a fixed request."""
        return max(0, self.card.capacity.left(self.promised, movable=movable))


def shortage(reason: Reason | None, wanted: Sequence[GpuRequest], rooms: Sequence[CardRoom]) -> NoRoom:
    """`reason` is the plugins', for this one machine; None if an owner refused what all plugins accepted."""
    movable = bool(wanted) and all(ask.movable for ask in wanted)
    if reason is None:
        return NoRoom(
            f"its containers do not fit onto the cards together; {_most_free(rooms, movable=movable)}", lasts=False
        )
    words = WORDS.get(reason.code)
    said = str(reason) if words is None else words(wanted)
    return NoRoom(said if reason.lasts else f"{said}; {_most_free(rooms, movable=movable)}", lasts=reason.lasts)


def amount(number: int) -> str:
    """Bytes for display, rounded down."""
    return f"{number / _GIB:.4g} GiB" if number >= _GIB else f"{number // _MIB} MiB"


def _most_free(rooms: Sequence[CardRoom], *, movable: bool) -> str:
    open_rooms = [room for room in rooms if room.card.is_allocatable]
    if not open_rooms:
        return "no card of this machine is free to share"
    free, most = max(
        ((room.free_bytes(movable=movable), room) for room in open_rooms),
        key=lambda pair: (min(pair[1].free_milli, _part(*pair)), pair[1].free_milli, pair[0]),
    )
    return f"the most that is free on one card is {most.free_milli} milli and {amount(free)} (card {most.card.index})"


def _part(free_bytes: int, room: CardRoom) -> int:
    """The free fraction of its memory, in milli."""
    return WHOLE_MILLI * free_bytes // max(1, room.card.memory_bytes)


def _cards(wanted: Sequence[GpuRequest]) -> str:
    count = max((ask.count for ask in wanted), default=1)
    return "no card has" if count == 1 else f"there are no {count} cards that have"


def _too_little_share(wanted: Sequence[GpuRequest]) -> str:
    return f"{_cards(wanted)} a share of {max((ask.least_share_milli for ask in wanted), default=0)} milli left"


def _too_little_memory(wanted: Sequence[GpuRequest]) -> str:
    memory = max((ask.memory_bytes or 0 for ask in wanted), default=0)
    return f"{_cards(wanted)} {amount(memory) if memory else 'the memory'} left beside that share"


WORDS: Final[Mapping[str, Callable[[Sequence[GpuRequest]], str]]] = {
    "gpu/no-cards": lambda _: "this machine has no cards",
    "gpu/too-few-healthy": lambda _: "this machine has too few cards that are healthy and may be shared",
    "gpu/too-few-wanted": lambda _: "this machine has too few cards such as it asks for",
    "gpu/no-model": lambda _: "this machine has no card of a model that it asks for",
    "gpu/share": _too_little_share,
    "gpu/memory": _too_little_memory,
    "gpu/memory-beyond": _too_little_memory,
    "gpu/in-use": lambda _: "too few cards of this machine hold nothing, and it asks for empty ones",
    "gpu/too-few-close": lambda _: "this machine has too few cards that lie as close as it asks for",
    "gpu/close": lambda wanted: f"{_cards(wanted)} enough left and lie as close as it asks for",
    "gpu/tags": lambda _: "tags of the pods on the cards keep it away (affinity, anti-affinity or exclusion)",
    "gpu/together": lambda _: "its containers do not fit onto the cards together",
}
"""By codes of the GPU plugin; other reasons are shown as they are."""
