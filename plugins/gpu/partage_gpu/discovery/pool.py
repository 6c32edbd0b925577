"""Decides which cards are in which pool, by settings and by who else is on the node. Pure.

Settings alone say how much of each may be promised beyond its memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from partage_gpu.discovery.known import KnownCards, gpu_of
from partage_gpu.discovery.settings import DRA, MEMORY_BEYOND, POOL, Choice, DiscoverySettings, PoolSetting
from partage_plugins.vocabulary.gpu import Pool
from partage_plugins.vocabulary.names import CardId


@dataclass(frozen=True)
class Pools:
    shared: frozenset[CardId] = frozenset()
    dra: frozenset[CardId] = frozenset()
    """The rest is kubelet's."""
    reservable: bool = False
    """Whether those that kubelet still has become ours by a reservation."""
    unmet: tuple[str, ...] = ()
    """For people: entries of a list that choose no card."""

    def of(self, card: CardId) -> Pool:
        return "dra" if card in self.dra else "shared" if card in self.shared else "kubelet"


def pools(settings: DiscoverySettings, known: KnownCards, *, has_natives: bool, reserved: AbstractSet[CardId]) -> Pools:
    """Without settings ours are all cards or, where somebody else hands out any, those that are reserved."""
    dra, not_dra = _set(DRA, settings.dra, known)
    if settings.shared.mode == "auto" and has_natives:
        return Pools(frozenset(reserved & known.cards.keys()) - dra, dra, reservable=True, unmet=not_dra)
    shared, not_shared = _set(POOL, settings.shared, known)
    return Pools(shared - dra, dra, unmet=(*not_shared, *not_dra))


@dataclass(frozen=True)
class BeyondMemory:
    """How much more than they have may be promised of cards."""

    of_card: Mapping[CardId, int] = field(default_factory=dict)
    """Bytes; none of others."""
    unmet: tuple[str, ...] = ()
    """For people: entries that choose no card."""


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
    """The cards that a setting alone puts into a pool, and its entries that choose none."""
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
    """Cards and whole GPUs; a GPU that is cut into instances stands for all of them."""
    match choice.by:
        case "number":  # as nvidia-smi counts: by place in the machine; a lost one is still counted
            return set(known.gpus()[int(choice.value) : int(choice.value) + 1])
        case "id":
            beginning = choice.value.lower()
            return {id_ for id_ in {*known.cards, *known.places} if id_.lower().startswith(beginning)}
        case "model":
            pattern = choice.value.lower()
            return {id_ for id_, card in known.cards.items() if fnmatchcase(card.model.lower(), pattern)}
