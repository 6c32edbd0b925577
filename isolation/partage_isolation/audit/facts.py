"""What the audit knows: what the ledger says of containers, and what a card says of the processes on it.

Pure and frozen: pictures of one moment. All amounts are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from partage_isolation.leases.line import Shares
from partage_isolation.ledger.budget import CardSpec
from partage_isolation.names import BudgetKey, budget_key, own_budget
from partage_plugins.vocabulary.names import BudgetName, CardId, ContainerKey, ContainerName
from partage_plugins.vocabulary.pods import PodRef

StateName = Literal["live", "detached", "unconfirmed", "dead"]


@dataclass(frozen=True)
class AmountFacts:
    used: int
    """By its own account, when it last spoke."""
    lent: int
    """What it may hold without asking."""
    unproved: int
    """What it says to have freed, and no sample has shown yet; or what it holds without ever having asked."""
    overhead: int
    """Contexts and the like."""
    state: StateName
    hidden: int = 0
    """Of `used`: managed memory, which a card shows as no process's."""

    @property
    def charged(self) -> int:
        return self.lent + self.unproved + self.overhead


@dataclass(frozen=True)
class ProcessFacts:
    pid: int
    start: int
    """When it began, in clock ticks since boot: tells it from another of the same pid."""
    key: ContainerKey
    connected: bool
    cards: Mapping[CardId, AmountFacts]
    state: StateName = "live"
    has_spoken: bool = True
    """False: a card shows it, and its library never came to us."""


@dataclass(frozen=True)
class MovingFacts:
    """Of what one budget holds of one card, and can leave it."""

    resident: int
    moved: int
    """On the host."""
    times: int
    """How often it had to leave."""
    spent_ns: int
    """On the way, in all."""
    is_out: bool
    is_suspended: bool
    late: int
    """What it was told to let go of and holds still, for too long."""


@dataclass(frozen=True)
class CardLimits:
    """What one budget may have of one card, and what is charged to it."""

    spec: CardSpec
    charged: int = 0
    refused: int = 0
    """How often more was asked for than the limit allows."""
    time: Shares | None = None
    """What it wanted and got of the card's time; None where that is not metered."""
    moving: MovingFacts | None = None
    """Of memory that can move; None where none does."""


@dataclass(frozen=True)
class ContainerFacts:
    key: ContainerKey
    pod: PodRef
    container: ContainerName
    gen: int
    cards: Mapping[CardId, CardLimits]
    """Of its budget."""
    processes: tuple[ProcessFacts, ...] = field(default=())
    budget_name: BudgetName | None = None
    """None: it shares with no other container."""
    is_claim: bool = False
    is_kept: bool = False
    """A claim that is not released: it stays, whatever the runtime lists."""
    engine_containers: tuple[str, ...] = ()
    """Those that entered the claim, by their engine's ids."""

    @cached_property
    def budget(self) -> BudgetKey:
        return own_budget(self.key) if self.budget_name is None else budget_key(self.pod.uid, self.budget_name)

    def used(self, card: CardId) -> int:
        return sum(process.cards[card].used for process in self.processes if card in process.cards)

    def overhead(self, card: CardId) -> int:
        return sum(process.cards[card].overhead for process in self.processes if card in process.cards)


@dataclass(frozen=True)
class CardUse:
    """One sample of one card, or of one MIG instance."""

    card: CardId
    taken_ns: int
    """CLOCK_MONOTONIC when NVML was called: what happened before that is in it."""
    processes: Mapping[int, int | None]
    """Bytes by pid, as the host numbers processes; None: the driver does not say of this one.

    One that is not named holds nothing.
    """


@dataclass(frozen=True)
class Blind:
    """A card of which the driver says of no process how much it holds, at a moment: nothing can be proved by it."""

    card: CardId
    taken_ns: int
    """As in `CardUse`."""


Sample = CardUse | Blind


class Nvml(Protocol):
    async def use(self, card: CardId) -> Sample | None:
        """A sample that begins after this call; None where there is none within the deadline.

        Never blocks the loop, and raises nothing. Askers that wait for the same card are answered by one call.
        """
        ...
