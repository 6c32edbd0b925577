"""A container's seat on a card: who is there, what they said, and what became of its lease.

Pure. A *member* is a process that has joined. A member that did not say in time that its work was done is *silent*: the
card does not wait for it until it speaks of the present line.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partage_isolation.leases.life import IDLE, TRAITS, TRANSITIONS, LeaseEvent, Life
from partage_isolation.leases.line import Drains, LineState, Shares
from partage_isolation.leases.meter import Meter
from partage_isolation.leases.policies.policy import Tally
from partage_isolation.names import BudgetKey
from partage_plugins.vocabulary.names import CardId

if TYPE_CHECKING:  # each knows the other
    from partage_isolation.leases.card import Card
    from partage_isolation.leases.demander import Demander

Member = Hashable
"""A process, as the caller knows it."""


@dataclass(slots=True)
class Presence:
    drained: int | None = None
    """The epoch whose work it last said to be done."""
    is_idle: bool = False
    """It said so of this epoch, and may have begun again since."""
    wants: bool = False
    silent_since: int | None = None
    """When its lease had ended, if it never said that its work was done."""
    is_stopped: bool = False
    """It does not run at all: what it launched is done, whatever it says."""


@dataclass(slots=True)
class Counts:
    leases: int = 0
    revocations: int = 0
    drains: int = 0
    drains_ns: int = 0
    last_drain_ns: int = 0
    overlaps: int = 0

    def drained(self, drain_ns: int) -> None:
        """All its work was done, in time: so long after the lease."""
        self.drains, self.drains_ns, self.last_drain_ns = self.drains + 1, self.drains_ns + drain_ns, drain_ns


@dataclass(slots=True, eq=False)
class Seat:
    key: BudgetKey
    card: Card
    account: Tally
    epoch: int
    drain_ns: int
    """How long its work is expected to need after a lease: the longest of late, and less each time."""
    wanted: Meter
    got: Meter
    demander: Demander
    life: Life = Life.EMPTY
    is_open: bool = False
    """Its processes may launch, unless the deadline has passed."""
    is_busy: bool = False
    """It wants the card or has it."""
    is_waiting: bool = False
    is_leased: bool = False
    is_closing: bool = False
    look_at: int = 0
    """When a lease has to be looked at: at its deadline, or before that to be renewed."""
    line: LineState = LineState.CLOSED
    deadline: int = 0
    members: dict[Member, Presence] = field(default_factory=dict[Member, Presence])
    undrained: set[Member] = field(default_factory=set[Member])
    """Members that its closing still waits for."""
    silent: set[Member] = field(default_factory=set[Member])
    granted_at: int = 0
    ended_at: int = 0
    """When its last lease was over, by its deadline or by our word."""
    closing_at: int = 0
    """When we began to wait for its work."""
    renewals: int = 0
    waiting_since: int = 0
    busy_since: int = 0
    charged: int = 0
    charged_from: int = 0
    is_awake: bool = False
    """It has just come to want the card, and may end another's turn."""
    is_quiet: bool = True
    """It was idle when it last had the card."""
    rested_at: int = 0
    """When it last gave the card up without waiting for it again."""
    is_capped: bool = False
    """It wants the card, and its ceiling keeps it from it, or that it is out."""
    is_out: bool = False
    """Its memory is not on the card, so it has no turns."""
    is_passed: bool = False
    """It was its turn here, and another card of its gang could not be had."""
    overlap_paid: int = 0
    counts: Counts = field(default_factory=Counts)

    @property
    def card_id(self) -> CardId:
        return self.card.id

    @property
    def is_in_order(self) -> bool:
        """It wants the card or has it, and no ceiling keeps it away."""
        return self.is_busy and not self.is_capped

    @property
    def has_gone(self) -> bool:
        """It does not want the card, and was not idle when it last had it: it may be between two launches."""
        return not (self.is_quiet or self.is_busy) and self.life is IDLE

    @property
    def is_behind(self) -> bool:
        """Work of a silent member may still run."""
        return self.still_running() > 0

    def still_running(self) -> int:
        """How many silent members may have work under way."""
        return sum([not self.members[member].is_stopped for member in self.silent])

    def running(self) -> int:
        """How many members may have work under way while it holds the card."""
        return sum(
            [not (each.is_idle or each.is_stopped or each.drained == self.epoch) for each in self.members.values()]
        )

    def happens(self, event: LeaseEvent, now: int) -> None:
        was_busy, self.life = self.is_busy, TRANSITIONS[self.life, event]
        self.is_open, self.is_busy, self.is_waiting, self.is_leased, self.is_closing = TRAITS[self.life]
        if self.is_busy is not was_busy:
            if was_busy:
                self.wanted.add(self.busy_since, now, now - self.busy_since)
            self.busy_since = now

    def settle(self, now: int) -> None:
        self.got.add(self.charged_from, now, self.charged)
        self.charged, self.charged_from = 0, now
        if self.is_busy:
            self.wanted.add(self.busy_since, now, now - self.busy_since)
            self.busy_since = now

    def is_overdue(self, now: int) -> bool:
        """It has waited for too long, although it has a share and no ceiling keeps it."""
        if now < self.card.patient_until or not self.is_waiting or self.overdue_at > now:
            return False
        return self.account.share > 0 and not self.is_capped

    def begins_to_wait(self, now: int) -> None:
        """Its wait is counted from now on."""
        self.waiting_since = now
        self.card.policy.asks(self.account, now)
        self.card.patient_until = min(self.card.patient_until, self.overdue_at)

    @property
    def is_at_rest(self) -> bool:
        """It has no turn, and none whose work is waited for."""
        return not (self.is_open or self.is_closing)

    @property
    def held_ns(self) -> int:
        """How long it has had the card, in all."""
        return self.got.total + self.charged

    @property
    def overdue_at(self) -> int:
        return self.waiting_since + self.demander.longest_wait_ns

    def waits(self) -> bool:
        return any([presence.wants for presence in self.members.values()])  # noqa: C419 - a list is faster

    def forget_wants(self, epoch: int | None = None) -> None:
        """Members that still wait say so again under another epoch; one that ended the last epoch itself waits on."""
        for presence in self.members.values():
            presence.is_idle = False
            presence.wants &= epoch is not None and presence.drained == epoch

    def says_idle(self) -> bool:
        """Some member was idle under this epoch: it may have begun again, and would not say so."""
        return any([presence.is_idle for presence in self.members.values()])  # noqa: C419 - as above

    def all_finished(self) -> bool:
        """Each member that speaks has ended this lease itself, or was idle."""
        speaks = False
        for each in self.members.values():
            if each.silent_since is None:
                speaks = True
                if not (each.is_idle or each.drained == self.epoch):
                    return False
        return speaks

    def measured(self, drain_ns: int) -> None:
        """Its work needed so long after a lease."""
        self.drain_ns = max(drain_ns, self.drain_ns - (self.drain_ns - drain_ns) // 16)

    def shares(self, now: int) -> Shares:
        self.settle(now)
        counts = self.counts
        return Shares(
            wanted=self.wanted.windows(now),
            got=self.got.windows(now),
            leases=counts.leases,
            revocations=counts.revocations,
            drains=Drains(counts.drains, counts.drains_ns, counts.last_drain_ns),
            overlaps=counts.overlaps,
            state=self.line if self.is_open else LineState.CLOSED,
            is_waiting=self.is_waiting,
            members=len(self.members),
        )
