"""Who holds what on the node, and whether a container's cards are here and have room beside that. Pure.

The runtime is authoritative: a container that it lists with our annotation, and that has not exited, holds its grants.
A container enters that list only through a create, which is reserved before it goes upstream. So *a listing, together
with every reservation that was made or still stood since it began, misses nothing*. A container that both show is
counted once, by its key.

A reservation may go when a listing that began later speaks for its container. An older listing would then miss the
container. So dropping moves the *horizon* to the beginning of the listing that it rested on, and a listing that began
before the horizon is not used. Several processes share reservations and horizon under one lock, so an old and a new
crishim see each other. A stale listing only counts too much (containers that have ended since), so it may say yes; only
a fresh one may say no.

Counted is the kind `gpu`, which is ours; devices of other kinds are their plugins' to refuse. A card that is degraded
takes no new pods, which is the scheduler's business: containers of pods that are here may restart on it. The containers
of a budget hold its grants together, so a budget counts once. Where they were made from allocations that differ, it
counts with the most that any of them was given of a card. Memory that moves counts as `card_memory` says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from msgspec import Struct

from partage_base.cri.runtime_config import RuntimeConfig
from partage_crishim.rules.errors import NodeNotReady, NoRoom
from partage_plugins.vocabulary import (
    GPU,
    Card,
    CardId,
    ContainerAllocation,
    ContainerKey,
    GpuGrant,
    GpuPart,
)
from partage_plugins.vocabulary.card_memory import Amount, of_pod, together
from partage_plugins.vocabulary.gpu import HANDED_OUT_BY
from partage_plugins.vocabulary.limits import WHOLE_MILLI


class Holding(Struct, frozen=True, kw_only=True):
    """What one container holds, or is about to hold; alone, or with the others of its pod that use the same budget."""

    key: ContainerKey
    pod: str
    container: str
    gen: int
    cards: tuple[GpuGrant, ...]
    budget: str | None = None

    @classmethod
    def of(cls, record: ContainerAllocation, cards: tuple[GpuGrant, ...], *, pod: str, container: str) -> Self:
        """What a container's record says, of which `cards` are its grants of our kind."""
        budget = record.budgets.get(GPU.name)
        return cls(key=record.key, pod=pod, container=container, gen=record.gen, cards=cards, budget=budget)

    @property
    def account(self) -> tuple[str, str]:
        """Equal for containers that hold the same together."""
        return ("", self.key) if self.budget is None else (self.pod, self.budget)


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


def require_cards(grants: Iterable[GpuGrant], part: GpuPart | None) -> None:
    """Refuses cards that are not here, lost, or not ours to share."""
    for grant in grants:
        card = part.card(grant.card) if part else None
        if card is None:
            raise NoRoom(f"partage: card {grant.card} is not on this node; was it taken out? Delete the pod to move it")
        if card.is_lost:
            raise NoRoom(f"partage: card {grant.card} is lost; see the node's kernel log. Delete the pod to move it")
        if card.pool != "shared":
            raise NoRoom(
                f"partage: card {grant.card} is handed out by {HANDED_OUT_BY[card.pool]} on this node; delete the pod "
                "to move it, or reserve the card for partage"
            )


def require_counted(config: RuntimeConfig) -> None:
    """Refuses where what runs cannot be counted: a restored container is listed with annotations that others wrote."""
    if config.restores:
        raise NodeNotReady(
            "partage: containerd on this node restores checkpoints when it creates containers, whose cards can't be "
            "counted then; its administrator turns enable_experimental_restore_via_create off, or, before containerd "
            "2.2.7 and 2.3.4, which have no such setting, has to take CRIU off it"
        )


def require_room(mine: Holding, others: Iterable[Holding], part: GpuPart | None) -> None:
    """Refuses what would give a card away twice; another attempt at the same container is not another."""
    held = [mine, *(each for each in others if each.container != mine.container or each.pod != mine.pod)]
    for card_id in dict.fromkeys([grant.card for grant in mine.cards]):
        card = part.card(card_id) if part else None
        if card is None:  # said in words by `require_cards`
            raise NodeNotReady(f"partage: card {card_id} left this node's inventory just now")
        _require_room_on(card, held)


def _require_room_on(card: Card, held: Iterable[Holding]) -> None:
    share: dict[tuple[str, str], int] = {}
    stays: dict[tuple[str, str], int] = {}
    moves: dict[tuple[str, str], int] = {}
    for each in held:
        grants = [grant for grant in each.cards if grant.card == card.id]
        account = each.account
        share[account] = max(share.get(account, 0), sum([grant.share_milli for grant in grants]))
        stays[account] = max(stays.get(account, 0), sum([each.memory_bytes for each in grants if not each.movable]))
        moves[account] = max(moves.get(account, 0), sum([each.memory_bytes for each in grants if each.movable]))
    promised = together(
        [of_pod([Amount("app", stays[each], False), Amount("app", moves[each], True)]) for each in stays]
    )
    too_much = None
    if sum(share.values()) > WHOLE_MILLI:
        too_much = "compute"
    elif not card.capacity.keeps(promised):
        too_much = "memory"
    if too_much:
        raise NoRoom(
            f"partage: card {card.id} has not enough {too_much} left for this container: other containers on the node "
            "hold it; kubelet tries again, and where this stays, delete the pod to move it"
        )
