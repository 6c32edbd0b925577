"""What counts of containers whose pod was given another allocation while they run. Pure.

Their own record, which the runtime keeps, never changes. So a newer allocation that was verified is kept beside it:
until it is in force in a container, of each amount the larger counts, and from then on what is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from partage_crishim.rules.errors import AllocationRefused
from partage_crishim.rules.holdings import Holding, Listing, Reservation
from partage_plugins.vocabulary import GPU, Allocation, ContainerKey, GpuGrant
from partage_plugins.vocabulary.gpu import larger

_Cards = tuple[GpuGrant, ...]
_OTHER: Final = (
    "partage: a newer allocation of pod {} gives container {} other cards than it runs with; only a new pod can have "
    "them"
)


class Regrant(Struct, frozen=True, kw_only=True):
    """A newer allocation of one pod."""

    gen: int
    cards: Mapping[str, _Cards]
    """By container."""
    before: Mapping[str, _Cards] = {}
    """What counted before, by key."""
    keys: tuple[ContainerKey, ...] = ()
    """Of containers in which it is in force."""


Regrants = Mapping[str, Regrant]
"""By pod."""


def regrant_of(allocation: Allocation, mine: Iterable[Holding], known: Regrants) -> Regrant:
    """For containers that run; refused where it gives one of them other cards than it has."""
    names = {*allocation.containers, *(use.container for use in allocation.uses)}
    cards: dict[str, _Cards] = {name: given for name in names if (given := allocation.given(name, GPU))}
    before = dict[str, _Cards]()
    for each in mine:
        if not _are_same(cards.get(each.container, ()), each.cards):
            raise AllocationRefused(_OTHER.format(each.pod, each.container))
        before[each.key] = counted(each, known).cards
    return Regrant(gen=allocation.gen, cards=cards, before=before)


def counted(held: Holding, known: Regrants) -> Holding:
    """What a container holds by now."""
    newer = known.get(held.pod)
    cards = () if newer is None else newer.cards.get(held.container, ())
    if newer is None or newer.gen <= held.gen or not _are_same(cards, held.cards):
        return held
    if held.key not in newer.keys:
        before = newer.before.get(held.key, held.cards)
        cards = tuple(larger(*pair) for pair in zip(cards, before, strict=True))
    return replace(held, gen=newer.gen, cards=cards)


def as_counted(
    listing: Listing, reservations: tuple[Reservation, ...], known: Regrants
) -> tuple[Listing, tuple[Reservation, ...]]:
    """Both, with what containers hold by now; the same objects where nothing was granted anew."""
    if not known:
        return listing, reservations
    containers = tuple(
        each if each.held is None else type(each)(id=each.id, exited=each.exited, held=counted(each.held, known))
        for each in listing.containers
    )
    again = tuple(replace(each, held=counted(each.held, known)) for each in reservations)
    return Listing(began_s=listing.began_s, containers=containers), again


def _are_same(some: _Cards, others: _Cards) -> bool:
    return [grant.card for grant in some] == [grant.card for grant in others]
