"""The known cards of a node: all that were seen, now or before. Pure.

A card is identified by its uuid alone; its number may change with each start. A card that was seen once stays known, so
that a missing card is reported as lost. MIG instances are the exception: instances that a healthy GPU no longer lists
were destroyed on purpose. A GPU that is split into instances is no card itself: it can't be allocated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec.structs import replace

from partage_gpu.discovery.causes import plain
from partage_gpu.nvml.facts import CardFacts, NodeFacts
from partage_plugins.api.gpu import FIGURES, Card, GpuPart
from partage_plugins.api.health import HealthCause
from partage_plugins.api.names import CardId

_LONGEST_NAME: Final = 128
_MOST: Final = 65535
"""The largest value of any figure."""
_CAPABILITY: Final = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}", re.ASCII)
_ADDRESS: Final = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.ASCII)

Links = Mapping[CardId, Mapping[CardId, int]]


class Numbers(NamedTuple):
    """The driver's numbers of a GPU, as of the last look."""

    by_nvml: int
    minor: int | None


@dataclass(frozen=True, kw_only=True)
class KnownCards:
    """Cards by id, with attributes only: health and pool are computed elsewhere."""

    driver: str = ""
    cuda: str = ""
    cards: Mapping[CardId, Card] = field(default_factory=dict)
    links: Links = field(default_factory=dict)
    places: Mapping[CardId, str] = field(default_factory=dict)
    """PCI addresses by GPU, including GPUs in MIG mode without instances."""
    numbers: Mapping[CardId, Numbers] = field(default_factory=dict)
    """By GPU; those in the last look."""
    blind: AbstractSet[CardId] = frozenset()
    """GPUs for which NVML does not report the memory of processes, as of the last time that any process used them."""

    def in_order(self) -> list[Card]:
        """Sorted by place in the machine, so that equal hardware gives equal text."""
        return sorted(self.cards.values(), key=lambda card: (card.pci, card.id))

    def gpus(self) -> list[CardId]:
        """Whole GPUs, in the same order."""
        return sorted(self.places, key=lambda gpu: (self.places[gpu], gpu))


def gpu_of(card: Card) -> CardId:
    """The GPU itself, or the GPU of a MIG instance."""
    return card.parent or card.id


def recalled_cards(part: GpuPart) -> KnownCards:
    """The cards of the last inventory before a restart."""
    ids = [card.id for card in part.cards]
    links = {
        one: {other: n for other, n in zip(ids, row, strict=True) if n}
        for one, row in zip(ids, part.links, strict=False)
    }
    return KnownCards(
        driver=part.driver,
        cuda=part.cuda,
        cards={card.id: card for card in part.cards},
        links=links,
        places={gpu_of(card): card.pci for card in part.cards},
        blind={gpu_of(card) for card in part.cards if card.cause is HealthCause.BLIND},
    )


def seen(known: KnownCards, facts: NodeFacts, *, reserve_bytes: int) -> KnownCards:
    """With the results of one more look. The data of a faulty card does not replace its earlier data."""
    shown = {CardId(gpu.uuid): gpu for gpu in facts.cards if gpu.fault is None or gpu.uuid not in known.places}
    cards = {id_: card for id_, card in known.cards.items() if gpu_of(card) not in shown}
    for id_, gpu in shown.items():
        for card in cards_of(gpu, reserve_bytes):
            before = known.cards.get(card.id) if id_ in known.numbers else None
            cards[card.id] = _never_larger(card, before)
    return KnownCards(
        driver=_name(facts.driver),
        cuda=_name(facts.cuda),
        cards=cards,
        links={**known.links, **{id_: _links(gpu) for id_, gpu in shown.items()}},
        places={**known.places, **{id_: _address(gpu.pci) for id_, gpu in shown.items()}},
        numbers={CardId(gpu.uuid): Numbers(gpu.index, gpu.minor) for gpu in facts.cards},
        blind=frozenset(_blind(known.blind, shown)),
    )


def _blind(before: AbstractSet[CardId], shown: Mapping[CardId, CardFacts]) -> Iterator[CardId]:
    """An empty card does not show whether it is blind."""
    yield from before - shown.keys()
    for id_, gpu in shown.items():
        if gpu.tells_use is False or (gpu.tells_use is None and id_ in before):
            yield id_


def cards_of(shown: CardFacts, reserve_bytes: int) -> Iterator[Card]:
    """A GPU as a card, or its MIG instances as cards."""
    plain_card = Card(
        id=CardId(shown.uuid),
        index=0,
        model=_name(shown.model),
        memory_bytes=max(0, shown.memory_bytes - shown.reserved_bytes - reserve_bytes),
        compute_capability=shown.compute_capability if _CAPABILITY.fullmatch(shown.compute_capability) else "0.0",
        pci=_address(shown.pci),
        pool="shared",
    )
    whole = replace(plain_card, **{name: shown.figures[name] for name in FIGURES if _is_small(shown.figures.get(name))})
    if not shown.is_mig:
        yield whole
        return
    for instance in shown.instances:
        yield replace(
            whole,
            id=CardId(instance.uuid),
            memory_bytes=max(0, instance.memory_bytes - reserve_bytes),
            mig_profile=_name(instance.profile),
            parent=whole.id,
        )


def _name(text: str) -> str:
    return plain(text, _LONGEST_NAME, otherwise="unknown")


def _never_larger(card: Card, before: Card | None) -> Card:
    """The driver's own reserve varies slightly; memory that is relied on must not go up and down with it."""
    return card if before is None else replace(card, memory_bytes=min(card.memory_bytes, before.memory_bytes))


def _links(gpu: CardFacts) -> dict[CardId, int]:
    return {CardId(other): count for other, count in gpu.links.items() if 0 < count <= _MOST}


def _address(pci: str) -> str:
    """With a domain of four digits if that is enough: NVML writes eight, all others four."""
    match = _ADDRESS.fullmatch(pci.lower())
    return f"{int(match[1], 16):04x}:{match[2]}" if match else _name(pci)


def _is_small(figure: int | None) -> bool:
    return figure is not None and 0 <= figure <= _MOST
