"""On which cards time is metered, and what a process that joins there is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from partage_isolation.broker.wire import Lease, Loss
from partage_isolation.leasing.policies import by_name
from partage_isolation.leasing.policies.policy import Policy
from partage_isolation.leasing.timing import Timing
from partage_plugins.vocabulary.kinds import Promise
from partage_plugins.vocabulary.names import CardId

IDLE_US: Final = 500
"""Who has launched nothing for so long, and has no work under way, has no need of its lease."""
LOSS_AFTER_NS: Final = 1_000_000_000
"""A broker that is started again is back by then."""

_MEMORY: Final[tuple[Promise, ...]] = ("memory",)
_ALL: Final[tuple[Promise, ...]] = ("memory", "share", "limit")


@dataclass(frozen=True)
class Terms:
    """Of one node."""

    policy: str
    policies: Mapping[CardId, str] = field(default_factory=dict[CardId, str])
    """Of single cards."""
    timing: Timing = Timing()  # noqa: RUF009  it is frozen
    loss: Loss = Loss.FREE

    def policy_of(self, card: CardId) -> Policy:
        """Who gets a card's time."""
        return by_name(self.name_of(card), self.timing)

    def name_of(self, card: CardId) -> str:
        """Of that policy."""
        return self.policies.get(card, self.policy)

    def are_for(self, card: CardId) -> bool:
        """Whether its time is metered."""
        return self.policy_of(card).is_metering

    def enforced_on(self, cards: Iterable[CardId]) -> tuple[Promise, ...]:
        """What is in force for a container that has these."""
        return _ALL if all(map(self.are_for, cards)) else _MEMORY

    @property
    def enforced(self) -> tuple[Promise, ...]:
        """What is in force on every card."""
        return _ALL if all(by_name(name).is_metering for name in (self.policy, *self.policies.values())) else _MEMORY

    @property
    def lease(self) -> Lease:
        """What who joins is told."""
        return Lease(idle_us=IDLE_US, loss=self.loss, loss_after=LOSS_AFTER_NS)
