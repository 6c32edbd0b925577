"""Whether a container's cards are here and have room beside what others hold. Pure.

Counted is the kind `gpu`, which is ours; devices of other kinds are their plugins' to refuse. A card that is degraded
takes no new pods, which is the scheduler's business: containers of pods that are here may restart on it.

The containers of a budget hold its grants together, so a budget counts once. Where they were made from allocations that
differ, it counts with the most that any of them was given of a card. Memory that moves counts as `card_memory` says.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from partage_base.cri.runtime_config import RuntimeConfig
from partage_crishim.rules.errors import NodeNotReady, NoRoom
from partage_plugins.vocabulary import Card, ContainerKey, GpuGrant, GpuPart
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

    @property
    def account(self) -> tuple[str, str]:
        """Equal for containers that hold the same together."""
        return ("", self.key) if self.budget is None else (self.pod, self.budget)


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
