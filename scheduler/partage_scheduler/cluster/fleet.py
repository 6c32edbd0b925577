"""Known nodes and their devices. Pure: it passes changes on to the decider and the predicates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from partage_plugins.api import GPU, AnyKind, Card, Inventory, NodeName, PodRequest, Slot
from partage_plugins.api.keys import INVENTORY
from partage_plugins.api.kinds import whole_devices
from partage_plugins.api.names import claim_of
from partage_plugins.api.reasons import Reason
from partage_plugins.codecs import decode_inventory
from partage_plugins.codecs.critical import needed_by
from partage_plugins.errors import DecodeError
from partage_scheduler.cluster.cluster_events import NOTHING, ClusterEvent
from partage_scheduler.cluster.readiness import SAID_NOTHING, UNREADABLE, Readiness, obstacle_of
from partage_scheduler.decision import Decider, FilteredNodes
from partage_scheduler.objects import ApiNode
from partage_scheduler.predicates import Predicates, room_of
from partage_scheduler.versions import Versions

Causes = frozenset[ClusterEvent]
_EMPTY: Final = Inventory(kinds={})
_NODE, _INVENTORY = frozenset((ClusterEvent.NODE,)), frozenset((ClusterEvent.INVENTORY,))


class Known(Struct, frozen=True):
    node: ApiNode
    slot: Slot
    inventory: Inventory


class Fleet:
    """All nodes; pods are tracked elsewhere."""

    def __init__(
        self,
        decider: Decider,
        predicates: Predicates,
        *,
        silent_after_s: float,
        kinds: Iterable[AnyKind],
        claims: bool = False,
    ) -> None:
        """`claims`: whether this scheduler allocates the cards of claims, too."""
        self._hands_out_claimed = claims
        self._decider, self._predicates, self._kinds = decider, predicates, tuple(kinds)
        self._enforced = frozenset(kind.name for kind in self._kinds if kind.promises is not whole_devices)
        self._nodes: dict[NodeName, Known] = {}
        self._readiness = Readiness(silent_after_s)
        self._seen = Versions()
        self._withheld: frozenset[str] = frozenset()
        """Reservations whose cards count as kubelet's."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: NodeName) -> bool:
        return node in self._nodes

    def __getitem__(self, node: NodeName) -> Known:
        return self._nodes[node]

    @property
    def names(self) -> Sequence[NodeName]:
        return tuple(self._nodes)

    @property
    def nodes(self) -> Sequence[ApiNode]:
        return [known.node for known in self._nodes.values()]

    def get(self, node: NodeName) -> Known | None:
        return self._nodes.get(node)

    def is_news(self, node: ApiNode) -> bool:
        return self._seen.is_news(node.metadata.uid, node.metadata.resource_version)

    def barred(self, request: PodRequest, now: float) -> list[FilteredNodes]:
        """Nodes that take no part in device sharing of the kind that this request needs."""
        needs_broker = not request.kinds.isdisjoint(self._enforced)
        if all(claim_of(each.name) is not None for each in request.containers):
            return self._readiness.barred_to_claims(now)
        return self._readiness.barred(now, needs_broker=needs_broker, reads=needed_by(request))

    def told(self, inventory: Inventory) -> Inventory:
        """The inventory for plugins, in which cards that others allocate claims on are kubelet's."""
        part = None if self._hands_out_claimed else inventory.part(GPU)
        if part is None or not any(card.pool == "dra" for card in part.cards):
            return inventory
        cards = tuple(replace(card, pool="kubelet") if card.pool == "dra" else card for card in part.cards)
        return replace(inventory, kinds={**inventory.kinds, GPU.name: replace(part, cards=cards)})

    def why_not(self, node: NodeName, now: float) -> Reason | None:
        known = self._nodes[node]
        part = known.inventory.part(GPU)
        by_claims = part is not None and bool(part.cards) and all(card.pool == "dra" for card in part.cards)
        return self._readiness.why_not(known.slot, now, by_claims=by_claims)

    def beats(self, node: NodeName, renewed_s: float | None, now: float) -> Causes:
        return _NODE if self._readiness.beat(node, renewed_s, now) else NOTHING

    def comes(self, node: ApiNode) -> Known:
        inventory, obstacle = self._inventory_of(node, _EMPTY)
        self._decider.add_node(node.name, self.told(inventory), room_of(node))
        slot = self._decider.slots.known(node.name)
        self._nodes[node.name] = known = Known(node, slot, inventory)
        reads, has_broker = inventory.reads.crit, inventory.ready.broker
        self._readiness.put(node.name, slot, obstacle, reads=reads, has_broker=has_broker)
        self._predicates.put_node(slot, node)
        return known

    def changes(self, known: Known, node: ApiNode) -> Causes:
        cluster_events = NOTHING
        before, inventory = known.node, known.inventory
        if node.metadata.annotations.get(INVENTORY) != before.metadata.annotations.get(INVENTORY):
            inventory, obstacle = self._inventory_of(node, known.inventory)
            if inventory.kinds != known.inventory.kinds:
                self._decider.replace_inventory(node.name, self.told(inventory))
                cluster_events |= _INVENTORY
            reads, has_broker = inventory.reads.crit, inventory.ready.broker
            if self._readiness.put(node.name, known.slot, obstacle, reads=reads, has_broker=has_broker):
                cluster_events |= _INVENTORY
        if node.status.allocatable != before.status.allocatable:
            self._decider.resize_node(node.name, room_of(node))
        if _matters(node, before):
            self._predicates.put_node(known.slot, node)
            cluster_events |= _NODE
        elif node.status != before.status or node.metadata.annotations != before.metadata.annotations:
            self._predicates.put_node(known.slot, node)  # images, conditions: recorded, but no reason to retry pods
        self._nodes[node.name] = Known(node, known.slot, inventory)
        return cluster_events

    def withhold(self, reservations: frozenset[str]) -> Iterator[Known]:
        """Treats the cards of these reservations as kubelet's; yields the nodes that change."""
        if reservations == self._withheld:
            return
        self._withheld = reservations
        for known in tuple(self._nodes.values()):
            inventory = without(known.inventory, reservations)
            if inventory is not known.inventory:
                self._decider.replace_inventory(known.node.name, self.told(inventory))
                self._nodes[known.node.name] = now = replace(known, inventory=inventory)
                yield now

    def goes(self, known: Known) -> None:
        """Removes a node, whose pods were removed before."""
        name = known.node.name
        self._predicates.remove_node(known.slot)
        self._decider.remove_node(name)
        self._readiness.remove(name)
        self._seen.gone(known.node.metadata.uid)
        del self._nodes[name]

    def _inventory_of(self, node: ApiNode, before: Inventory) -> tuple[Inventory, int]:
        """The inventory that a node reports, and the obstacle that keeps it from taking part."""
        text = node.metadata.annotations.get(INVENTORY)
        if text is None:
            return _EMPTY, SAID_NOTHING
        try:
            inventory = decode_inventory(text, self._kinds)
        except DecodeError:
            return before, UNREADABLE
        return without(inventory, self._withheld), obstacle_of(inventory)


def without(inventory: Inventory, reservations: frozenset[str]) -> Inventory:
    """The inventory as if these reservations held no card; the same object if they hold no shared card."""
    part = inventory.part(GPU)
    if part is None or not any(_is_lost_with(card, reservations) for card in part.cards):
        return inventory
    cards = tuple(replace(card, pool="kubelet") if _is_lost_with(card, reservations) else card for card in part.cards)
    return replace(inventory, kinds={**inventory.kinds, GPU.name: replace(part, cards=cards)})


def _is_lost_with(card: Card, reservations: frozenset[str]) -> bool:
    return card.reservation in reservations and card.pool == "shared"


def _matters(node: ApiNode, before: ApiNode) -> bool:
    """Whether pods that did not fit may fit now."""
    return (
        node.spec != before.spec
        or node.metadata.labels != before.metadata.labels
        or node.status.allocatable != before.status.allocatable
    )
