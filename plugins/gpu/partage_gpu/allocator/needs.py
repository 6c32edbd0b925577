"""The cards that a request and its tags allow, and the memory that it takes on each make of card."""

from __future__ import annotations

from typing import Final

import numpy as np

from partage_gpu.allocator.cluster import Cluster, Make, Sort
from partage_plugins.answers import Flags, Ints, Slots
from partage_plugins.api.gpu import GpuRequest, Tags
from partage_plugins.api.names import CardId

UNWANTED: Final = 1 << 62
"""Memory that a card of an unwanted make would need: more than any card has."""

_REQUEST_BYTES: Final = 2048
_WORD_BYTES: Final = 64
"""Size of a text without its characters."""
_WORDS: Final = ("models", "models_not", "model_parts", "model_parts_not", "cards", "cards_not")


def needs_of(cluster: Cluster, wanted: GpuRequest) -> Ints:
    """Bytes by make; `UNWANTED` if the request excludes the make."""
    known = cluster.needs.get(wanted)
    if known is None or len(known) < len(cluster.makes):
        known = np.array([_need(wanted, make) for make in cluster.makes], np.int64)
        cluster.needs.put(wanted, known, bytes_of(wanted) + known.nbytes)
    return known


def bytes_of(wanted: GpuRequest) -> int:
    """The approximate size of a request in memory."""
    words = [word for name in _WORDS for word in getattr(wanted, name)]
    bundles = sum(1 + len(bundle.parts) for bundle in wanted.bundles)
    return _REQUEST_BYTES + _WORD_BYTES * (bundles + len(words)) + sum(map(len, words))


def for_claims(cluster: Cluster) -> Flags:
    """By make: whether its cards are handed out only to claims."""
    return np.array([make.is_claimable for make in cluster.makes], np.bool_)


def wanted_cards(cluster: Cluster, wanted: GpuRequest, slots: Slots) -> Flags:
    """The cards that the request allows by their ids; a GPU's id also names the MIG instances on it."""
    allowed = np.full(cluster.holders.shape, not wanted.cards, np.bool_)
    for card in wanted.cards:
        _mark(allowed, cluster, card, value=True)
    for card in wanted.cards_not:
        _mark(allowed, cluster, card, value=False)
    chosen: Flags = allowed[slots]
    return chosen


def left_by_tags(cluster: Cluster, tags: Tags, slots: Slots) -> Flags:
    """The cards that the tags allow for a grant."""
    idle: Flags = cluster.holders[slots] == 0
    if tags.exclusion is None:
        allowed: Flags = cluster.walled[slots] == 0
    else:
        allowed = carriers(cluster, ("exclusion", tags.exclusion), slots) == cluster.holders[slots]
    if tags.affinity is not None:
        allowed &= carriers(cluster, ("affinity", tags.affinity), slots) > 0
    if tags.anti_affinity is not None:
        allowed &= carriers(cluster, ("anti-affinity", tags.anti_affinity), slots) == 0
    return idle | allowed


def carriers(cluster: Cluster, tag: tuple[Sort, str], slots: Slots) -> Ints:
    """The number of grants on each card that carry a tag."""
    found: Ints = np.zeros_like(cluster.holders)
    for at, number in cluster.tags.carrying(tag).items():
        found[at] = number
    return found[slots]


def _need(wanted: GpuRequest, make: Make) -> int:
    is_wanted = wanted.wants_model(make.model) and wanted.wants_instance(make.is_instance)
    is_wanted = is_wanted and make.memory_bytes >= wanted.least_card_bytes and make.is_claimable == wanted.is_claim
    return wanted.memory_on(make.memory_bytes) if is_wanted else UNWANTED


def _mark(allowed: Flags, cluster: Cluster, card: CardId, *, value: bool) -> None:
    for at in cluster.by_id.get(card, ()):
        allowed[at] = value
