"""What a whole allocation uses of each card: the most that is in use at any time of the pod's life.

Init containers run one after another before the app containers, so they use the same room again: of a card, a pod uses
its sidecars' sum, and beside it the larger of its app containers' sum and its largest init container. Sidecars count as
if they all ran from the beginning, which is never less than what is in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from partage_plugins.vocabulary.allocation import Allocation
from partage_plugins.vocabulary.gpu import GPU, NO_TAGS, GpuGrant, Tags
from partage_plugins.vocabulary.names import CardId


class Usage(NamedTuple):
    card: CardId
    share_milli: int
    memory_bytes: int
    holders: int
    tags: tuple[Tags, ...]
    """Of the grants that have any."""


def usages(allocation: Allocation) -> Iterator[Usage]:
    """What a pod uses, card by card."""
    by_card: dict[CardId, list[GpuGrant]] = {}
    for grants in allocation.of(GPU).values():
        for grant in grants:
            by_card.setdefault(grant.card, []).append(grant)
    for card, held in by_card.items():
        yield _usage(card, held)


def _usage(card: CardId, held: list[GpuGrant]) -> Usage:
    tags = tuple(grant.tags for grant in held if grant.tags != NO_TAGS)
    if len(held) == 1:
        return Usage(card, held[0].share_milli, held[0].memory_bytes, 1, tags)
    share = peak((grant.role, grant.share_milli) for grant in held)
    memory = peak((grant.role, grant.memory_bytes) for grant in held)
    return Usage(card, share, memory, len(held), tags)


def peak(amounts: Iterable[tuple[str, int]]) -> int:
    """The most that is in use at once, of amounts with their containers' roles."""
    sums = {"sidecar": 0, "app": 0, "init": 0}
    for role, amount in amounts:
        sums[role] = max(sums[role], amount) if role == "init" else sums[role] + amount
    return sums["sidecar"] + max(sums["app"], sums["init"])
