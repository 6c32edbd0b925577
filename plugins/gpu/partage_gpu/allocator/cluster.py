"""All nodes' cards: what is left of each, in exact integers.

A node keeps its own numbers in lists; the same numbers are kept in arrays over all nodes, indexed by slot and card, for
results about many nodes at once. Cards that can be given neither to pods nor to claims are never counted. No decisions
are made here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

import numpy as np

from partage_gpu.allocator.beyond import MemoryLeft, Pledges
from partage_gpu.allocator.closeness import Closeness, closeness
from partage_gpu.allocator.levels import Board
from partage_plugins.answers import Ints, Slots
from partage_plugins.api.gpu import Card, GpuPart, GpuRequest, Tags
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import CardId, Slot
from partage_plugins.api.pods import Resources
from partage_plugins.api.usage import Usage
from partage_plugins.cache import Cache
from partage_plugins.rules.levels import CardLevels, card_levels

Sort = Literal["affinity", "anti-affinity", "exclusion"]
Place = tuple[Slot, int]


class TagBook:
    """The number of grants on each card that carry each tag.

    The rules apply to cards in use; an idle card is always allowed. Affinity: of the cards in use only those that carry
    the same tag. Anti-affinity: none that carries the same tag. Exclusion: only cards whose grants all have the same
    tag, where having none counts as a value in both directions.
    """

    def __init__(self) -> None:
        self.carried: dict[tuple[Sort, str], Counter[Place]] = {}
        """By tag: the number of grants on each card."""
        self._of_slot: dict[Slot, Counter[tuple[Sort, str]]] = {}

    @property
    def any(self) -> bool:
        """Whether any card carries a tag."""
        return bool(self.carried)

    def count(self, slot: Slot, place: int, tags: Tags, sign: int) -> None:
        """Adds (`sign` 1) or removes (-1) one grant."""
        for tag in sorts(tags):
            carried = self.carried.setdefault(tag, Counter())
            carried[slot, place] += sign
            if not carried[slot, place]:
                del carried[slot, place]
            if not carried:
                del self.carried[tag]
            of_slot = self._of_slot.setdefault(slot, Counter())
            of_slot[tag] += sign
            if not of_slot[tag]:
                del of_slot[tag]

    def forget(self, slot: Slot) -> None:
        for tag in self._of_slot.pop(slot, ()):
            left = Counter({at: number for at, number in self.carried[tag].items() if at[0] != slot})
            if left:
                self.carried[tag] = left
            else:
                del self.carried[tag]

    def carrying(self, tag: tuple[Sort, str]) -> Counter[Place]:
        """The cards that carry a tag, with the number of grants."""
        return self.carried.get(tag, Counter())


def sorts(tags: Tags) -> tuple[tuple[Sort, str], ...]:
    """The tags that are set, each with its sort."""
    pairs: tuple[tuple[Sort, str | None], ...] = (
        ("affinity", tags.affinity),
        ("anti-affinity", tags.anti_affinity),
        ("exclusion", tags.exclusion),
    )
    return tuple((sort, tag) for sort, tag in pairs if tag is not None)


CLOSED: Final = -(1 << 53)
"""Value of the share left of a card that no pod may be given: lower than any possible share."""
UNLIMITED: Final = 1 << 53
"""CPU of a node whose allocatable CPU is not known."""
_MOST_BYTES: Final = 1 << 62
_MOST_NEEDS_BYTES: Final = 8 << 20
_FEWEST_NODES: Final = 16
_FEWEST_CARDS: Final = 8


class Make(NamedTuple):
    """Properties that cards have in common; each make has a number."""

    model: str
    memory_bytes: int
    is_instance: bool = False
    is_claimable: bool = False
    """Handed out to claims only."""


class Node:
    """One node's cards, by index."""

    __slots__ = (
        "cards",
        "closeness",
        "holders",
        "level",
        "levels",
        "makes",
        "memory_left",
        "places",
        "pledges",
        "share_left",
    )

    def __init__(self, part: GpuPart | None, close: Closeness, levels: CardLevels) -> None:
        self.closeness, self.levels = close, levels
        self.cards: tuple[Card, ...] = part.cards if part else ()
        self.places = {card.id: place for place, card in enumerate(self.cards) if _is_counted(card)}
        self.share_left = [WHOLE_MILLI if _is_counted(card) else CLOSED for card in self.cards]
        self.memory_left = [card.memory_bytes if _is_counted(card) else 0 for card in self.cards]
        """For memory that does not move."""
        self.pledges = {
            place: Pledges(card.capacity)
            for place, card in enumerate(self.cards)
            if card.beyond_bytes and _is_counted(card)
        }
        """For oversubscribed cards only."""
        self.level = [0] * len(self.cards)
        self.holders = [0] * len(self.cards)
        self.makes = [0] * len(self.cards)


class Cluster:
    """All nodes by slot."""

    def __init__(self) -> None:
        self.nodes: dict[Slot, Node] = {}
        self.tags = TagBook()
        self.makes: list[Make] = [Make("", 1)]
        """Number 0 stands for no card."""
        self.total_bytes: Ints = np.ones(1, np.int64)
        """Memory by make."""
        self.needs = Cache[GpuRequest, Ints](_MOST_NEEDS_BYTES)
        """Filled by `needs`: bytes by make."""
        self.by_id: dict[CardId, set[tuple[Slot, int]]] = {}
        """Where the cards with an id are, and the MIG instances of a card with that id."""
        self.cards_of: Counter[str] = Counter()
        """The number of cards of each model that pods may be given."""
        self.beyond = 0
        """The number of oversubscribed cards."""
        self.changes = 0
        """Incremented when nodes are added, removed or change size."""
        self.moment = 0
        """Incremented on every change here."""
        self._boards: dict[Closeness, Closeness] = {}
        """Nodes with the same hardware share one table."""
        self._levels: dict[CardLevels, CardLevels] = {}
        self._known_boards = -1, frozenset[Board]()
        """With the value of `changes` for which they were computed."""
        self._make_numbers: dict[Make, int] = {self.makes[0]: 0}
        self._size(_FEWEST_NODES, _FEWEST_CARDS)

    def _size(self, nodes: int, cards: int) -> None:
        self.share_left: Ints = np.full((nodes, cards), CLOSED, np.int64)
        self.memory_left: Ints = np.zeros((nodes, cards), np.int64)
        self.more_within: Ints = np.zeros((nodes, cards), np.int64)
        """How much more than `memory_left` may be promised, for cards with `pledges`; 0 for others, as in the next
        two."""
        self.more_beside: Ints = np.zeros((nodes, cards), np.int64)
        """How much more than `memory_left` is left beside all that never leaves the card."""
        self.turn: Ints = np.zeros((nodes, cards), np.int64)
        """The most that one movable container needs during its turn."""
        self.level: Ints = np.zeros((nodes, cards), np.int64)
        """The smaller of the remaining share and memory, in milli of the card."""
        self.make: Ints = np.zeros((nodes, cards), np.int64)
        self.holders: Ints = np.zeros((nodes, cards), np.int64)
        """The number of grants on the card; 0 if it is idle."""
        self.walled: Ints = np.zeros((nodes, cards), np.int64)
        """The number of these grants that have an exclusion tag."""
        self.cpu_left: Ints = np.full(nodes, UNLIMITED, np.int64)
        self.cpu_total: Ints = np.zeros(nodes, np.int64)
        self.cards: Ints = np.zeros(nodes, np.int64)
        """The number of cards of each node that pods may be given."""
        self.main_make: Ints = np.zeros(nodes, np.int64)
        """The make of the node's first card; nodes of mixed makes are rare."""
        self.changed: Ints = np.zeros(nodes, np.int64)
        """The value of `moment` at each node's last change."""

    @property
    def boards(self) -> frozenset[Board]:
        """The distinct hardware layouts of nodes."""
        if self._known_boards[0] != self.changes:
            found = frozenset(Board(node.levels, tuple(node.places.values())) for node in self.nodes.values())
            self._known_boards = self.changes, found
        return self._known_boards[1]

    def add(self, slot: Slot, part: GpuPart | None) -> None:
        """Adds a node without any allocation."""
        close, levels = closeness(part), card_levels(part)
        node = Node(part, self._boards.setdefault(close, close), self._levels.setdefault(levels, levels))
        self.nodes[slot] = node
        self.beyond += len(node.pledges)
        self._grow(slot + 1, len(node.cards))
        self._count_models(node, 1)
        for place, card in enumerate(node.cards):
            for card_id in filter(None, (card.id, card.parent)):
                self.by_id.setdefault(card_id, set()).add((slot, place))
            make = Make(card.model, card.memory_bytes, card.is_instance, card.is_claimable)
            self.make[slot, place] = node.makes[place] = self._make_number(make)
            self._write(slot, place, node)
        self._touch(slot)
        self.cards[slot] = len(node.places)
        self.main_make[slot] = self.make[slot, 0] if node.cards else 0

    def remove(self, slot: Slot) -> None:
        """Removes a node and everything counted on it."""
        node = self.nodes.pop(slot)
        self.beyond -= len(node.pledges)
        self._count_models(node, -1)
        for place, card in enumerate(node.cards):
            for card_id in filter(None, (card.id, card.parent)):
                self.by_id[card_id].discard((slot, place))
                if not self.by_id[card_id]:
                    del self.by_id[card_id]
        self.tags.forget(slot)
        self.share_left[slot] = CLOSED
        for array in (
            self.memory_left,
            self.more_within,
            self.more_beside,
            self.turn,
            self.level,
            self.make,
            self.holders,
            self.walled,
            self.cards,
            self.cpu_total,
            self.main_make,
        ):
            array[slot] = 0
        self.cpu_left[slot] = UNLIMITED
        self._touch(slot)

    def left_on(self, slots: Slots) -> MemoryLeft:
        """What is left of memory, where some of it may be movable."""
        left = self.memory_left.take(slots, 0)
        within, beside = self.more_within.take(slots, 0), self.more_beside.take(slots, 0)
        return MemoryLeft(left + within, left + beside, self.turn.take(slots, 0))

    def room(self, slot: Slot, total: Resources, free: Resources) -> None:
        if self.cpu_total[slot] != total.cpu_milli:
            self.cpu_total[slot] = total.cpu_milli
            self.changes += 1
        self.cpu_left[slot] = free.cpu_milli
        self._touch(slot)

    def take(self, slot: Slot, usages: Iterable[Usage]) -> None:
        """Counts a pod's usage of a node's cards; cards that no pod may be given are ignored."""
        self._count(slot, usages, sign=1)

    def give_back(self, slot: Slot, usages: Iterable[Usage]) -> None:
        self._count(slot, usages, sign=-1)

    def _count(self, slot: Slot, usages: Iterable[Usage], *, sign: int) -> None:
        node = self.nodes[slot]
        self._touch(slot)
        for usage in usages:
            place = node.places.get(usage.card)
            if place is None:
                continue
            node.share_left[place] -= sign * usage.share_milli
            if node.pledges and place in node.pledges:
                node.memory_left[place] = node.pledges[place].count(usage.memory, sign)
            else:
                node.memory_left[place] -= sign * usage.memory_bytes
            node.holders[place] += sign * usage.holders
            for tags in usage.tags:
                self.tags.count(slot, place, tags, sign)
                if tags.exclusion is not None:
                    self.walled[slot, place] += sign
            self._write(slot, place, node)

    def _touch(self, slot: Slot) -> None:
        self.moment += 1
        self.changed[slot] = self.moment

    def _count_models(self, node: Node, sign: int) -> None:
        self.changes += 1
        for place in node.places.values():
            model = node.cards[place].model
            self.cards_of[model] += sign
            if not self.cards_of[model]:
                del self.cards_of[model]

    def _write(self, slot: Slot, place: int, node: Node) -> None:
        share, memory, total = node.share_left[place], node.memory_left[place], node.cards[place].memory_bytes
        self.share_left[slot, place] = share
        self.memory_left[slot, place] = max(-_MOST_BYTES, min(memory, _MOST_BYTES))
        self.level[slot, place] = node.level[place] = level_of(share, memory, total)
        self.holders[slot, place] = node.holders[place]
        if node.pledges and place in node.pledges:
            within, beside, turn = node.pledges[place].slack()
            self.more_within[slot, place] = min(within, _MOST_BYTES >> 1)
            self.more_beside[slot, place] = min(beside, _MOST_BYTES >> 1)
            self.turn[slot, place] = min(turn, _MOST_BYTES)

    def _make_number(self, make: Make) -> int:
        number = self._make_numbers.setdefault(make, len(self.makes))
        if number == len(self.makes):
            self.makes.append(make)
            self.total_bytes = np.append(self.total_bytes, max(1, make.memory_bytes))
        return number

    def _grow(self, nodes: int, cards: int) -> None:
        """By doubling, so that the amortized cost of adding a node is low."""
        had_nodes, had_cards = self.share_left.shape
        if nodes <= had_nodes and cards <= had_cards:
            return
        old = dict(vars(self))
        self._size(_doubled(had_nodes, nodes), _doubled(had_cards, cards))
        for name, array in vars(self).items():
            if name in _BY_SLOT:
                array[tuple(slice(0, length) for length in old[name].shape)] = old[name]


_BY_SLOT: Final = frozenset(
    (
        "share_left",
        "memory_left",
        "more_within",
        "more_beside",
        "turn",
        "level",
        "make",
        "holders",
        "walled",
        "cpu_left",
        "cpu_total",
        "cards",
        "main_make",
        "changed",
    )
)


def level_of(share_milli: int, memory_bytes: int, total_bytes: int) -> int:
    """The smaller of a card's remaining share and memory, in milli of the card."""
    memory_milli = memory_bytes * WHOLE_MILLI // total_bytes if total_bytes else 0
    return max(0, min(share_milli, memory_milli))


def _is_counted(card: Card) -> bool:
    return card.is_allocatable or card.is_claimable


def _doubled(had: int, needed: int) -> int:
    while had < needed:
        had *= 2
    return had
