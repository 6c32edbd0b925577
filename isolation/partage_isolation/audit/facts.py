"""Input of the audit: the ledger's data on containers, and cards' data on their processes.

Pure and frozen: snapshots of one moment. All amounts are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from partage_isolation.ledger.budget import CardSpec
from partage_isolation.names import BudgetKey, budget_key, own_budget
from partage_isolation.timeslices.line import Shares
from partage_plugins.api.names import BudgetName, CardId, ContainerKey, ContainerName
from partage_plugins.api.pods import PodRef

StateName = Literal["live", "detached", "unconfirmed", "dead"]


@dataclass(frozen=True)
class AmountFacts:
    used: int
    """As the process last reported."""
    lent: int
    """What it may hold without asking."""
    unproved: int
    """Reported as freed but not confirmed by a sample, or held without ever having been requested."""
    overhead: int
    """Contexts and the like."""
    state: StateName
    hidden: int = 0
    """Managed memory, as part of `used`; a card attributes it to no process."""

    @property
    def charged(self) -> int:
        return self.lent + self.unproved + self.overhead


@dataclass(frozen=True)
class ProcessFacts:
    pid: int
    start: int
    """Start time in clock ticks since boot: tells it from another process with the same pid."""
    key: ContainerKey
    connected: bool
    cards: Mapping[CardId, AmountFacts]
    state: StateName = "live"
    has_spoken: bool = True
    """False: a card shows it, and its library never connected."""


@dataclass(frozen=True)
class MigrationFacts:
    """State of one budget's movable memory on one card."""

    resident: int
    moved: int
    """On the host."""
    times: int
    """How often it had to leave."""
    spent_ns: int
    """Total time spent moving."""
    is_out: bool
    is_suspended: bool
    late: int
    """Bytes that it was ordered to move out and has held for too long."""


@dataclass(frozen=True)
class CardLimits:
    """What one budget may have of one card, and what is charged to it."""

    spec: CardSpec
    charged: int = 0
    refused: int = 0
    """Number of requests refused at the limit."""
    time: Shares | None = None
    """The card's time that it wanted and got; None where that is not metered."""
    moving: MigrationFacts | None = None
    """State of movable memory; None where it has none."""


@dataclass(frozen=True)
class ContainerFacts:
    key: ContainerKey
    pod: PodRef
    container: ContainerName
    gen: int
    cards: Mapping[CardId, CardLimits]
    """The budget's cards."""
    processes: tuple[ProcessFacts, ...] = field(default=())
    budget_name: BudgetName | None = None
    """None: it shares with no other container."""
    is_claim: bool = False
    is_kept: bool = False
    """A claim that is not released: it stays, regardless of the runtime's list."""
    engine_containers: tuple[str, ...] = ()
    """Containers that entered the claim, by their engine's ids."""

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
    """CLOCK_MONOTONIC when NVML was called: the sample includes everything before that."""
    processes: Mapping[int, int | None]
    """Bytes by pid in the host's pid namespace; None: the driver does not report it for this one.

    A process that is not listed holds nothing.
    """


@dataclass(frozen=True)
class Blind:
    """A sample of a card for which the driver reports no process's memory: it can prove nothing."""

    card: CardId
    taken_ns: int
    """As in `CardUse`."""


Sample = CardUse | Blind


class Nvml(Protocol):
    async def use(self, card: CardId) -> Sample | None:
        """Take a sample that begins after this call; None where there is none within the deadline.

        Never blocks the loop and never raises. Callers that wait for the same card share one call.
        """
        ...
