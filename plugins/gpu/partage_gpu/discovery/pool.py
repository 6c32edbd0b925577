"""Decides which cards are ours to hand out, by setting and by who else is on the node. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fnmatch import fnmatchcase

from partage_gpu.discovery.known import KnownCards, gpu_of
from partage_gpu.discovery.settings import POOL, Choice, PoolSetting
from partage_plugins.vocabulary.names import CardId


@dataclass(frozen=True)
class Pools:
    shared: frozenset[CardId]
    reservable: bool = False
    """Whether those that kubelet still has become ours by a reservation."""
    unmet: tuple[str, ...] = ()
    """For people: entries of the list that choose no card."""


def pools(setting: PoolSetting, known: KnownCards, *, has_natives: bool, reserved: AbstractSet[CardId]) -> Pools:
    """Without a setting: all cards or, where somebody else hands out any, those that are reserved."""
    if setting.mode == "listed":
        return _listed(setting.listed, known)
    if setting.mode == "auto" and has_natives:
        return Pools(frozenset(reserved & known.cards.keys()), reservable=True)
    return Pools(frozenset() if setting.mode == "none" else frozenset(known.cards))


def _listed(choices: Sequence[Choice], known: KnownCards) -> Pools:
    shared: set[CardId] = set()
    unmet: list[str] = []
    for choice in choices:
        chosen = _chosen(choice, known)
        if not chosen:
            unmet.append(f"{POOL} has {choice}, which chooses no card of this node")
        elif choice.by == "id" and len(chosen) > 1:
            unmet.append(f"{POOL} has {choice}, which could be any of {len(chosen)} cards; write more of its id")
        else:
            shared |= chosen
    return Pools(
        frozenset(id_ for id_, card in known.cards.items() if {id_, gpu_of(card)} & shared), unmet=tuple(unmet)
    )


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
