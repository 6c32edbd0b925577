"""``partage nodes --pods``: which pod holds how much of each card, as the scheduler counts, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from partage_base.kube import ApiServer
from partage_cli.cluster_view import looking
from partage_cli.schedulers import told
from partage_cli.tables import amount, printable, short_id, table
from partage_plugins.api import GPU, Card, CardId, NodeName
from partage_plugins.api.card_memory import together
from partage_plugins.api.gpu import HANDED_OUT_BY, Pool
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.usage import Usage, usages
from partage_plugins.errors import Refused
from partage_scheduler.core import Core

_HEADER: Final = ("NODE", "CARD", "MODEL", "POD", "SHARE", "MEMORY")


class HoldingPod(Struct, frozen=True, kw_only=True):
    pod: str
    """namespace/name."""
    share_milli: int
    memory_bytes: int


class HeldCard(Struct, frozen=True, kw_only=True):
    node: NodeName
    card: CardId
    index: int
    model: str
    pool: Pool
    holders: tuple[HoldingPod, ...]
    share_left_milli: int
    memory_left_bytes: int
    """Both ignore holders that the scheduler does not count, such as kubelet's."""


class HeldCards(Struct, frozen=True, kw_only=True):
    cards: tuple[HeldCard, ...]
    notes: tuple[str, ...] = ()
    """What the result depends on and is uncertain, one line each."""


async def held_cards(server: ApiServer, *, namespace: str, root: Path, node: str | None) -> HeldCards:
    """Cards of one node, or of all with an inventory. Raises `KubeError`, and `Refused` if the node does not exist."""
    scheduler = await told(server, namespace)
    async with looking(server, scheduler, scheduler.settings(root, namespace), root) as seen:
        names = sorted(each.name for each in seen.core.cluster.fleet.nodes)
        if node is not None and node not in names:
            raise Refused(f"there is no node {node}; `kubectl get nodes` has their names")
        cards = tuple(card for name in names if node in (None, name) for card in _of_node(seen.core, NodeName(name)))
    return HeldCards(cards=cards, notes=(*scheduler.notes, *filter(None, (seen.unchecked,))))


def as_table(found: HeldCards) -> str:
    return table(_HEADER, (row for card in found.cards for row in _rows(card)))


def _of_node(core: Core, node: NodeName) -> Iterator[HeldCard]:
    part = core.cluster.inventory(node).part(GPU)
    held: dict[CardId, list[tuple[str, Usage]]] = {}
    for pod, allocation in core.cluster.holders(node):
        claimed = [each for _, each in core.cluster.claims.held(pod)]
        for usage in (usage for each in (allocation, *claimed) for usage in usages(each)):
            held.setdefault(usage.card, []).append((f"{pod.namespace}/{pod.name}", usage))
    for card in sorted(part.cards if part else (), key=lambda each: (each.index, each.id)):
        yield _held(node, card, held.get(card.id, []))


def _held(node: NodeName, card: Card, held: list[tuple[str, Usage]]) -> HeldCard:
    return HeldCard(
        node=node,
        card=card.id,
        index=card.index,
        model=card.model,
        pool=card.pool,
        holders=tuple(
            HoldingPod(pod=pod, share_milli=usage.share_milli, memory_bytes=usage.memory_bytes) for pod, usage in held
        ),
        share_left_milli=WHOLE_MILLI - sum(usage.share_milli for _, usage in held),
        memory_left_bytes=card.capacity.left(together(usage.memory for _, usage in held), movable=False),
    )


def _rows(card: HeldCard) -> Iterator[tuple[str, ...]]:
    begins = (card.node, f"{card.index} {short_id(card.card)}", printable(card.model))
    for each in card.holders:
        yield (*begins, printable(each.pod), str(each.share_milli), amount(each.memory_bytes))
    if card.pool != "shared":
        yield (*begins, f"({HANDED_OUT_BY[card.pool]} hands it out)", "-", "-")
        return
    left = "left" if card.holders else "unused"
    yield (*begins, f"({left})", str(max(0, card.share_left_milli)), amount(max(0, card.memory_left_bytes)))
