"""All that a simulated broker tells its arbiter, written down so that it can be told to another one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from partage_isolation.leases.arbiter import Arbiter
from partage_isolation.leases.line import Hint, Write
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import CardId
from partage_plugins.vocabulary.pods import Gang
from support.lease_simulation.cases import Case
from support.lease_simulation.world import World

Happening = Callable[[Arbiter], object]


class Recorder(Arbiter):
    """An arbiter that remembers what it was told, in order."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.happened: list[Happening] = []
        self.acts = 0
        self.seconds = 0.0

    def put(self, key: BudgetKey, card: CardId, *, share: int, limit: int, gang: Gang | None = None) -> None:
        self.happened.append(lambda to: to.put(key, card, share=share, limit=limit, gang=gang))
        super().put(key, card, share=share, limit=limit, gang=gang)

    def joined(self, key: BudgetKey, card: CardId, member: Hashable, now: int) -> None:
        self.happened.append(lambda to: to.joined(key, card, member, now))
        super().joined(key, card, member, now)

    def wanted(self, key: BudgetKey, card: CardId, member: Hashable, epoch: int, now: int) -> None:
        self.happened.append(lambda to: to.wanted(key, card, member, epoch, now))
        super().wanted(key, card, member, epoch, now)

    def drained(  # noqa: PLR0913, PLR0917 - as the arbiter's
        self,
        key: BudgetKey,
        card: CardId,
        member: Hashable,
        epoch: int,
        at: int,
        blocked: bool,  # noqa: FBT001
        now: int,
    ) -> None:
        self.happened.append(lambda to: to.drained(key, card, member, epoch, at, blocked, now))
        super().drained(key, card, member, epoch, at, blocked, now)

    def idle(self, key: BudgetKey, card: CardId, member: Hashable, epoch: int, now: int) -> None:
        self.happened.append(lambda to: to.idle(key, card, member, epoch, now))
        super().idle(key, card, member, epoch, now)

    def tick(self, now: int) -> None:
        self.happened.append(lambda to: to.tick(now))
        super().tick(now)

    def take(self) -> list[Write | Hint]:
        acts = super().take()
        self.acts += len(acts)
        return acts


def recorded(case: Case) -> Recorder:
    world = World(case, arbiter=Recorder)
    world.run()
    assert isinstance(world.broker.arbiter, Recorder)
    world.broker.arbiter.seconds = case.lasts_ns / 1e9
    return world.broker.arbiter
