"""What a whole allocation uses of each card: the most that is in use at any time of the pod's life.

Init containers run one after another before the app containers, so they use the same resources: of a card, a pod uses
the sum of its sidecars, plus the larger of the sum of its app containers and its largest init container. Sidecars count
as if they all ran from the beginning, which is never less than what is in use. Memory of movable containers counts as
`card_memory` defines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from partage_plugins.api.allocation import Allocation
from partage_plugins.api.card_memory import Amount, Promised, of_pod
from partage_plugins.api.gpu import GPU, NO_TAGS, GpuGrant, Tags
from partage_plugins.api.names import CardId, ContainerName


class Usage(NamedTuple):
    card: CardId
    share_milli: int
    memory: Promised
    holders: int
    tags: tuple[Tags, ...]
    """Those of the grants that have any."""

    @property
    def memory_bytes(self) -> int:
        """All of the memory, on the card or moved away from it."""
        return self.memory.total


def usages(allocation: Allocation) -> Iterator[Usage]:
    """A pod's usage, card by card."""
    by_card: dict[CardId, list[tuple[ContainerName, GpuGrant]]] = {}
    for grantee, grants in allocation.of(GPU).items():
        for grant in grants:
            by_card.setdefault(grant.card, []).append((grantee, grant))
    for card, held in by_card.items():
        yield _usage(card, held)


def _usage(card: CardId, held: list[tuple[ContainerName, GpuGrant]]) -> Usage:
    tags = tuple([grant.tags for _, grant in held if grant.tags != NO_TAGS])
    if len(held) == 1:
        grant, size_bytes = held[0][1], held[0][1].memory_bytes
        memory = of_pod(_amounts(held)) if grant.movable else Promised(size_bytes, size_bytes)
        return Usage(card, grant.share_milli, memory, 1, tags)
    share = peak([(grant.role, grant.share_milli) for _, grant in held])
    if any(grant.movable for _, grant in held):
        memory = of_pod(_amounts(held))
    else:
        total = peak([(grant.role, grant.memory_bytes) for _, grant in held])
        memory = Promised(total, total)
    return Usage(card, share, memory, len(held), tags)


def _amounts(held: Iterable[tuple[ContainerName, GpuGrant]]) -> Iterable[Amount]:
    """Sums the grants of each container, since they move together."""
    found: dict[ContainerName, Amount] = {}
    for grantee, grant in held:
        before = found.get(grantee)
        size_bytes = grant.memory_bytes + (before.size_bytes if before else 0)
        found[grantee] = Amount(grant.role, size_bytes, grant.movable)
    return found.values()


def peak(amounts: Iterable[tuple[str, int]]) -> int:
    """The most that is in use at once, from amounts with their containers' roles."""
    sums = {"sidecar": 0, "app": 0, "init": 0}
    for role, amount in amounts:
        sums[role] = max(sums[role], amount) if role == "init" else sums[role] + amount
    return sums["sidecar"] + max(sums["app"], sums["init"])
