"""What a container, or a budget of several, holds of one card. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from partage_cli.top.times import SHORT_BY
from partage_isolation.wire.messages import CardHeld
from partage_plugins.api import GPU, Allocation, PodRef
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import budget_of, claim_of


@dataclass(frozen=True, eq=False)
class Workload:
    """What a container, or a budget of several, holds of one card."""

    namespace: str
    pod: str
    name: str
    node: str
    card: str
    index: int | None
    share_milli: int
    limit_milli: int
    memory_bytes: int
    uid: str
    """The pod's uid."""
    held: CardHeld | None = None
    """None if its node's broker has not reported it."""
    hour: tuple[tuple[float, float] | None, ...] = ()
    is_whole: bool = False
    """Whether this is all that its container has: no other card, and no budget with others."""

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.pod}"

    @cached_property
    def short_by(self) -> float:
        """The part of the card's time that it wanted, is guaranteed and did not get in the last minute; 0 if none."""
        time = None if self.held is None else self.held.time
        if time is None:
            return 0.0
        lacks = min(self.share_milli / WHOLE_MILLI, time.wanted.s60) - time.got.s60
        return lacks if lacks > SHORT_BY else 0.0

    @cached_property
    def idle_milli(self) -> int:
        """The part of its share that it wanted in no known minute."""
        time = None if self.held is None else self.held.time
        if time is None:
            return 0
        wanted = max([time.wanted.s60, *(each[0] for each in self.hour if each is not None)])
        return max(0, self.share_milli - round(wanted * WHOLE_MILLI))

    @property
    def idle_bytes(self) -> int:
        """The part of its memory that it does not hold."""
        return 0 if self.held is None else max(0, self.held.limit_bytes - self.held.charged_bytes)


def promised(pod: PodRef, node: str, allocation: Allocation) -> Iterator[Workload]:
    """What an allocation gives a pod, as long as its node's broker reports nothing of it."""
    for grantee, grants in allocation.of(GPU).items():
        name = str(budget_of(grantee) or (claim_of(grantee) or [grantee])[0])
        for grant in grants:
            yield Workload(
                namespace=pod.namespace,
                pod=pod.name,
                name=name,
                node=node,
                card=grant.card,
                index=None,
                share_milli=grant.share_milli,
                limit_milli=grant.limit_milli,
                memory_bytes=grant.memory_bytes,
                uid=pod.uid,
            )
