"""Accounting of running containers whose pod received a newer allocation. Pure.

Their own record, which the runtime keeps, never changes. So a newer allocation that was verified is kept beside it:
until it is in force in a container, the larger of each amount counts, and after that what is in force: nothing, if the
allocation suspends the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from partage_crishim.rules.errors import AllocationRefused
from partage_crishim.rules.holdings import Holding, Listing, Reservation
from partage_plugins.api import GPU, Allocation, ContainerKey, ContainerName, GpuGrant
from partage_plugins.api.gpu import larger

_Cards = tuple[GpuGrant, ...]
_OTHER: Final = (
    "partage: a newer allocation of pod {} gives container {} other cards than it runs with; only a new pod can have "
    "them"
)


class Regrant(Struct, frozen=True, kw_only=True):
    """A newer allocation of one pod."""

    gen: int
    counts: Mapping[ContainerKey, _Cards]
    """For each container that ran when it arrived."""
    keys: tuple[ContainerKey, ...] = ()
    """Containers in which it is in force."""
    suspended: bool | None = None
    """Whether it suspends the pod; False if an earlier one did, None if none did."""


Regrants = Mapping[str, Regrant]
"""By pod uid."""


def regrant_of(allocation: Allocation, mine: Iterable[Holding], known: Regrants) -> Regrant:
    """The regrant of running containers; refuses if it gives one of them other cards than it has."""
    counts = dict[ContainerKey, _Cards]()
    for each in mine:
        before, cards = counted(each, known).cards, allocation.given(ContainerName(each.container), GPU)
        if [grant.card for grant in each.cards] != [grant.card for grant in cards]:
            raise AllocationRefused(_OTHER.format(each.pod, each.container))
        # A container that was suspended counts nothing before.
        counts[each.key] = tuple(larger(*pair) for pair in zip(cards, before, strict=True)) if before else cards
    earlier = known.get(allocation.pod)
    was = None if earlier is None or earlier.suspended is None else False
    return Regrant(gen=allocation.gen, counts=counts, suspended=True if allocation.suspended is not None else was)


def in_force(known: Regrant, allocation: Allocation, held: Holding) -> Regrant:
    """The regrant with this container recorded as in force."""
    cards = () if known.suspended else allocation.given(ContainerName(held.container), GPU)
    return replace(known, counts={**known.counts, held.key: cards}, keys=(*known.keys, held.key))


def counted(held: Holding, known: Regrants) -> Holding:
    """What a container holds now."""
    newer = known.get(held.pod)
    cards = newer.counts.get(held.key) if newer is not None and newer.gen > held.gen else None
    return held if newer is None or cards is None else replace(held, gen=newer.gen, cards=cards)


def as_counted(
    listing: Listing, reservations: tuple[Reservation, ...], known: Regrants
) -> tuple[Listing, tuple[Reservation, ...]]:
    """Both, with what containers hold now; the same objects if there is no newer allocation."""
    if not known:
        return listing, reservations
    containers = tuple(
        each if each.held is None else type(each)(id=each.id, exited=each.exited, held=counted(each.held, known))
        for each in listing.containers
    )
    again = tuple(replace(each, held=counted(each.held, known)) for each in reservations)
    return Listing(began_s=listing.began_s, containers=containers), again
