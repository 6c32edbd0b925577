"""Who holds what on the node: the runtime's list, and reservations of creates that the list may not show yet. Pure.

The runtime is authoritative: a container that it lists with our annotation, and that has not exited, holds its grants.
A container enters that list only through a create, which is reserved before it goes upstream. So *a listing, together
with every reservation that was made or still stood since it began, misses nothing*. A container that both show is
counted once, by its key.

A reservation may go when a listing that began later speaks for its container. An older listing would then miss the
container. So dropping moves the *horizon* to the beginning of the listing that it rested on, and a listing that began
before the horizon is not used. Several processes share reservations and horizon under one lock, so an old and a new
crishim see each other. A stale listing only counts too much (containers that have ended since), so it may say yes; only
a fresh one may say no.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from partage_crishim.rules.capacity import Holding
from partage_crishim.rules.errors import NodeNotReady
from partage_plugins.vocabulary import CardId, ContainerKey


@dataclass(frozen=True, kw_only=True)
class OnNode:
    """A container that the runtime lists with our annotation; `held` is None where we cannot read that."""

    id: str
    exited: bool
    held: Holding | None


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What the runtime listed; `began_s` is taken before it was asked."""

    began_s: float
    containers: tuple[OnNode, ...]

    @cached_property
    def keys(self) -> frozenset[ContainerKey]:
        """All that it shows, ended ones too."""
        return frozenset(each.held.key for each in self.containers if each.held is not None)

    @cached_property
    def living(self) -> Mapping[ContainerKey, Holding]:
        """All containers that hold grants. Refuses where a living one's grants cannot be read: it may hold any."""
        living: dict[ContainerKey, Holding] = {}
        for each in self.containers:
            if each.exited:
                continue
            if each.held is None:
                raise NodeNotReady(
                    "partage: a container on this node holds grants that this crishim cannot read; "
                    "was crishim downgraded? Upgrade it, or delete that container's pod"
                )
            living[each.held.key] = each.held
        return living

    @cached_property
    def by_card(self) -> Mapping[CardId, tuple[Holding, ...]]:
        """Those that hold grants of a card."""
        found: dict[CardId, tuple[Holding, ...]] = {}
        for held in self.living.values():
            for card in {grant.card for grant in held.cards}:
                found[card] = (*found.get(card, ()), held)
        return found

    @cached_property
    def gens(self) -> Mapping[str, int]:
        """The newest allocation by pod, as far as its containers are still known."""
        gens: dict[str, int] = {}
        for each in self.containers:
            if each.held is not None:
                gens[each.held.pod] = max(each.held.gen, gens.get(each.held.pod, 0))
        return gens


class Reservation(Struct, frozen=True, kw_only=True):
    """A create in flight; after `until_s` no caller can still wait for it."""

    held: Holding
    token: str
    until_s: float


def holders(listing: Listing, reservations: Iterable[Reservation]) -> tuple[Holding, ...]:
    """All that hold grants, each once."""
    reserved = {each.held.key: each.held for each in reservations}
    return tuple({**reserved, **listing.living}.values())


def holders_of(cards: Collection[CardId], listing: Listing, reservations: Iterable[Reservation]) -> tuple[Holding, ...]:
    """Those that hold one of these cards: where many hold other cards, most need not be looked at."""
    living = listing.living
    found = {held.key: held for card in cards for held in listing.by_card.get(card, ())}
    reserved = {
        (held := each.held).key: held
        for each in reservations
        for grant in each.held.cards
        if grant.card in cards and each.held.key not in living
    }
    return (*found.values(), *reserved.values())


def highest_gen(pod: str, listing: Listing, reservations: Iterable[Reservation]) -> int:
    """The newest allocation that containers of this pod were made from, as far as they are still known; 0 for none."""
    return max([listing.gens.get(pod, 0), *[each.held.gen for each in reservations if each.held.pod == pod]])


def over(
    reservations: Iterable[Reservation], listing: Listing, ended_s: Mapping[str, float]
) -> tuple[Reservation, ...]:
    """Reservations for which this listing speaks: it shows the container, or began when the create was over.

    `ended_s` says by token when a create ended. It does not know creates that run, whose end is unknown, or of another
    process; of those only `until_s` is known.
    """
    keys = listing.keys

    def is_over(each: Reservation) -> bool:
        return each.held.key in keys or ended_s.get(each.token, each.until_s) < listing.began_s

    return tuple(each for each in reservations if is_over(each))


def gone(
    adjusted: Iterable[ContainerKey], listing: Listing, reservations: Iterable[Reservation]
) -> tuple[ContainerKey, ...]:
    """Keys that plugins adjusted, that the runtime no longer lists, and whose create is not in flight.

    Right only with a listing that began no earlier than the horizon of these reservations, and keys that were known
    before it began.
    """
    kept = listing.keys.union(each.held.key for each in reservations)
    return tuple(key for key in adjusted if key not in kept)
