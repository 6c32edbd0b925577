"""Assigns cards to pools, by settings and by who else is on the node. Pure.

How much more than its memory may be promised of each card depends on settings alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from partage_gpu.discovery.known import KnownCards, gpu_of
from partage_gpu.discovery.settings import DRA, MEMORY_BEYOND, POOL, Choice, DiscoverySettings, PoolSetting
from partage_plugins.api.gpu import Pool
from partage_plugins.api.names import CardId


@dataclass(frozen=True)
class Pools:
    shared: frozenset[CardId] = frozenset()
    dra: frozenset[CardId] = frozenset()
    """The rest is kubelet's."""
    reservable: bool = False
    """Whether a reservation makes kubelet's remaining cards ours."""
    unmet: tuple[str, ...] = ()
    """For people: entries of a list that match no card."""

    def of(self, card: CardId) -> Pool:
        return "dra" if card in self.dra else "shared" if card in self.shared else "kubelet"


def pools(settings: DiscoverySettings, known: KnownCards, *, has_natives: bool, reserved: AbstractSet[CardId]) -> Pools:
    """By default all cards are ours or, if a device plugin or DRA driver hands out any, only the reserved ones."""
    dra, not_dra = _set(DRA, settings.dra, known)
    if settings.shared.mode == "auto" and has_natives:
        return Pools(frozenset(reserved & known.cards.keys()) - dra, dra, reservable=True, unmet=not_dra)
    shared, not_shared = _set(POOL, settings.shared, known)
    return Pools(shared - dra, dra, unmet=(*not_shared, *not_dra))


@dataclass(frozen=True)
class BeyondMemory:
    """How much more than its memory may be promised of each card."""

    of_card: Mapping[CardId, int] = field(default_factory=dict)
    """Bytes; cards that are left out have none."""
    unmet: tuple[str, ...] = ()
    """For people: entries that match no card."""


def beyond_memory(settings: DiscoverySettings, known: KnownCards) -> BeyondMemory:
    found: dict[CardId, int] = {}
    unmet: list[str] = []
    for each in settings.memory_beyond:
        chosen: AbstractSet[CardId] = known.cards.keys()
        if each.choice is not None:
            chosen, not_met = _listed(MEMORY_BEYOND, (each.choice,), known)
            unmet += not_met
        found |= {card: each.of(known.cards[card].memory_bytes) for card in chosen}
    return BeyondMemory(found, tuple(unmet))


def _set(variable: str, setting: PoolSetting, known: KnownCards) -> tuple[frozenset[CardId], tuple[str, ...]]:
    """The cards that a setting puts into a pool, and its entries that match none."""
    if setting.mode == "listed":
        return _listed(variable, setting.listed, known)
    return frozenset() if setting.mode == "none" else frozenset(known.cards), ()


def _listed(variable: str, choices: Sequence[Choice], known: KnownCards) -> tuple[frozenset[CardId], tuple[str, ...]]:
    found: set[CardId] = set()
    unmet: list[str] = []
    for choice in choices:
        chosen = _chosen(choice, known)
        if not chosen:
            unmet.append(f"{variable} has {choice}, which chooses no card of this node")
        elif choice.by == "id" and len(chosen) > 1:
            unmet.append(f"{variable} has {choice}, which could be any of {len(chosen)} cards; write more of its id")
        else:
            found |= chosen
    return frozenset(id_ for id_, card in known.cards.items() if {id_, gpu_of(card)} & found), tuple(unmet)


def _chosen(choice: Choice, known: KnownCards) -> set[CardId]:
    """Cards and whole GPUs; a GPU that is split into instances stands for all of them."""
    match choice.by:
        case "number":  # as in nvidia-smi: by place in the machine; lost ones are still counted
            return set(known.gpus()[int(choice.value) : int(choice.value) + 1])
        case "id":
            beginning = choice.value.lower()
            return {id_ for id_ in {*known.cards, *known.places} if id_.lower().startswith(beginning)}
        case "model":
            pattern = choice.value.lower()
            return {id_ for id_, card in known.cards.items() if fnmatchcase(card.model.lower(), pattern)}
