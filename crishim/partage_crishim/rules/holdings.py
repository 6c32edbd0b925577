"""Accounting of a node's cards: which containers hold grants, and whether a new one's cards have room. Pure.

The runtime is authoritative: a container that it lists with our annotation, and that has not exited, holds its grants.
A container enters that list only through a create, which is reserved before it is sent upstream. So *a listing,
together with every reservation that was made or still existed since it began, misses nothing*. A container that appears
in both is counted once, by its key.

A reservation may be dropped once a listing that began later covers its container. An older listing would then miss the
container. So dropping moves the *watermark* to the start of the listing that justified it, and a listing that began
before the watermark is not used. Several processes share reservations and watermark under one lock, so an old and a new
crishim see each other. A stale listing can only overcount (containers that have ended since), so it suffices to accept;
only a fresh one suffices to refuse.

Only the kind `gpu`, which is ours, is counted; devices of other kinds are left to their plugins. A degraded card takes
no new pods, which the scheduler enforces: containers of pods that are here may restart on it. The containers of a
budget hold its grants together, so a budget counts once. If they were created from different allocations, it counts
with the largest amount that any of them was given of a card. Movable memory is counted by `card_memory`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from msgspec import Struct

from partage_base.cri.runtime_config import RuntimeConfig
from partage_crishim.rules.errors import NodeNotReady, NoRoom
from partage_plugins.api import (
    GPU,
    Card,
    CardId,
    ContainerAllocation,
    ContainerKey,
    GpuGrant,
    GpuPart,
)
from partage_plugins.api.card_memory import Amount, of_pod, together
from partage_plugins.api.gpu import HANDED_OUT_BY
from partage_plugins.api.limits import WHOLE_MILLI


class Holding(Struct, frozen=True, kw_only=True):
    """The grants that one container holds or is about to hold, alone or with the others that use the same budget."""

    key: ContainerKey
    pod: str
    container: str
    gen: int
    cards: tuple[GpuGrant, ...]
    budget: str | None = None

    @classmethod
    def of(cls, record: ContainerAllocation, cards: tuple[GpuGrant, ...], *, pod: str, container: str) -> Self:
        """The holding of a container from its record; `cards` are its grants of our kind."""
        budget = record.budgets.get(GPU.name)
        return cls(key=record.key, pod=pod, container=container, gen=record.gen, cards=cards, budget=budget)

    @property
    def account(self) -> tuple[str, str]:
        """The accounting key, equal for containers that share one budget."""
        return ("", self.key) if self.budget is None else (self.pod, self.budget)


@dataclass(frozen=True, kw_only=True)
class OnNode:
    """A container that the runtime lists with our annotation; `held` is None if the annotation cannot be read."""

    id: str
    exited: bool
    held: Holding | None


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A listing of the runtime; `began_s` is taken before the query."""

    began_s: float
    containers: tuple[OnNode, ...]

    @cached_property
    def keys(self) -> frozenset[ContainerKey]:
        """Keys of all listed containers, including exited ones."""
        return frozenset(each.held.key for each in self.containers if each.held is not None)

    @cached_property
    def living(self) -> Mapping[ContainerKey, Holding]:
        """All containers that hold grants. Refuses if a living one's grants cannot be read, since it may hold any."""
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
        """Holdings by card."""
        found: dict[CardId, tuple[Holding, ...]] = {}
        for held in self.living.values():
            for card in {grant.card for grant in held.cards}:
                found[card] = (*found.get(card, ()), held)
        return found

    @cached_property
    def gens(self) -> Mapping[str, int]:
        """The newest allocation by pod, over the listed containers."""
        gens: dict[str, int] = {}
        for each in self.containers:
            if each.held is not None:
                gens[each.held.pod] = max(each.held.gen, gens.get(each.held.pod, 0))
        return gens


class Reservation(Struct, frozen=True, kw_only=True):
    """A create in flight; after `until_s` no caller can still be waiting for it."""

    held: Holding
    token: str
    until_s: float


def holders(listing: Listing, reservations: Iterable[Reservation]) -> tuple[Holding, ...]:
    """All holdings, without duplicates."""
    reserved = {each.held.key: each.held for each in reservations}
    return tuple({**reserved, **listing.living}.values())


def holders_of(cards: Collection[CardId], listing: Listing, reservations: Iterable[Reservation]) -> tuple[Holding, ...]:
    """Holdings on any of these cards; skips containers on other cards, which may be many."""
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
    """The newest allocation of this pod's containers that are still listed or reserved; 0 for none."""
    return max([listing.gens.get(pod, 0), *[each.held.gen for each in reservations if each.held.pod == pod]])


def over(
    reservations: Iterable[Reservation], listing: Listing, ended_s: Mapping[str, float]
) -> tuple[Reservation, ...]:
    """Reservations that this listing covers: it shows the container, or it began after the create ended.

    `ended_s` has the time when a create ended, by token. It lacks creates that are running, whose outcome is unknown,
    or of another process; for those only `until_s` is known.
    """
    keys = listing.keys

    def is_over(each: Reservation) -> bool:
        return each.held.key in keys or ended_s.get(each.token, each.until_s) < listing.began_s

    return tuple(each for each in reservations if is_over(each))


def gone(
    adjusted: Iterable[ContainerKey], listing: Listing, reservations: Iterable[Reservation]
) -> tuple[ContainerKey, ...]:
    """Keys that plugins adjusted, that the runtime no longer lists, and whose create is not in flight.

    Correct only with a listing that began no earlier than the watermark of these reservations, and with keys that were
    known before it began.
    """
    kept = listing.keys.union(each.held.key for each in reservations)
    return tuple(key for key in adjusted if key not in kept)


def require_cards(grants: Iterable[GpuGrant], part: GpuPart | None) -> None:
    """Refuse cards that are not here, lost, or not ours to share."""
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
    """Refuse if containers cannot be counted: a restored container is listed with annotations that others wrote."""
    if config.restores:
        raise NodeNotReady(
            "partage: containerd on this node restores checkpoints when it creates containers, whose cards can't be "
            "counted then; its administrator turns enable_experimental_restore_via_create off, or, before containerd "
            "2.2.7 and 2.3.4, which have no such setting, has to take CRIU off it"
        )


def require_room(mine: Holding, others: Iterable[Holding], part: GpuPart | None) -> None:
    """Refuse grants that exceed a card's capacity; other attempts at the same container do not count."""
    held = [mine, *(each for each in others if each.container != mine.container or each.pod != mine.pod)]
    for card_id in dict.fromkeys([grant.card for grant in mine.cards]):
        card = part.card(card_id) if part else None
        if card is None:  # `require_cards` has the message for users
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
