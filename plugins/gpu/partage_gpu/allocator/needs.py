"""Which cards a request wants, and how much memory it takes of each make of card."""

from __future__ import annotations

from typing import Final

import numpy as np

from partage_gpu.allocator.cluster import Cluster, Make
from partage_gpu.allocator.figures import Ints
from partage_plugins.vocabulary.answers import Flags, Slots
from partage_plugins.vocabulary.gpu import MIB, GpuRequest
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.names import CardId

UNWANTED: Final = 1 << 62
"""Memory that a card of an unwanted model would need: more than any has."""


def needs_of(cluster: Cluster, wanted: GpuRequest) -> Ints:
    """Bytes by make; `UNWANTED` where the model is not wanted."""
    known = cluster.needs.get(wanted)
    if known is None or len(known) < len(cluster.makes):
        known = np.array([_need(wanted, make) for make in cluster.makes], np.int64)
        if len(cluster.needs) >= _MOST_KNOWN:
            cluster.needs.clear()
        cluster.needs[wanted] = known
    return known


def wanted_cards(cluster: Cluster, wanted: GpuRequest, slots: Slots) -> Flags:
    """The cards that the request allows by their ids; a GPU's id also names the MIG instances on it."""
    allowed = np.full(cluster.holders.shape, not wanted.cards, np.bool_)
    for card in wanted.cards:
        _mark(allowed, cluster, card, value=True)
    for card in wanted.cards_not:
        _mark(allowed, cluster, card, value=False)
    chosen: Flags = allowed[slots]
    return chosen


def memory_on(wanted: GpuRequest, total_bytes: int) -> int:
    """Bytes on a card of that much memory: as asked, or the share's fraction rounded down to 1 MiB."""
    if wanted.memory_bytes is not None:
        return wanted.memory_bytes
    return total_bytes * wanted.share_milli // WHOLE_MILLI // MIB * MIB


def wants_model(wanted: GpuRequest, model: str) -> bool:
    """Whether the request allows cards of a model."""
    return (not wanted.models or model in wanted.models) and model not in wanted.models_not


_MOST_KNOWN: Final = 4096


def _need(wanted: GpuRequest, make: Make) -> int:
    return memory_on(wanted, make.memory_bytes) if wants_model(wanted, make.model) else UNWANTED


def _mark(allowed: Flags, cluster: Cluster, card: CardId, *, value: bool) -> None:
    for at in cluster.by_id.get(card, ()):
        allowed[at] = value
