"""One container on one card: its lease, its processes there, and what it was charged. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partage_isolation.leasing.acts import Drains, Shares
from partage_isolation.leasing.life import IDLE, TRAITS, TRANSITIONS, Event, Life
from partage_isolation.leasing.meters import Meter
from partage_isolation.leasing.policies.accounts import Account
from partage_isolation.leasing.presence import Counts, Member, Presence
from partage_isolation.leasing.words import LineState
from partage_plugins.vocabulary.names import CardId, ContainerKey

if TYPE_CHECKING:
    from partage_isolation.leasing.cards import Card
    from partage_isolation.leasing.gangs import Demander


@dataclass(slots=True, eq=False)
class Seat:
    """See the module."""

    key: ContainerKey
    card: Card
    account: Account
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
    """Whom its closing still waits for."""
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
    """It wants the card, and its ceiling keeps it from it."""
    is_passed: bool = False
    """It was its turn here, and another card of its gang could not be had."""
    overlap_paid: int = 0
    counts: Counts = field(default_factory=Counts)

    @property
    def card_id(self) -> CardId:
        """Of its card."""
        return self.card.id

    @property
    def is_in_order(self) -> bool:
        """It wants the card or has it, and may have it."""
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

    def happens(self, event: Event, now: int) -> None:
        """See `life`."""
        was_busy, self.life = self.is_busy, TRANSITIONS[self.life, event]
        self.is_open, self.is_busy, self.is_waiting, self.is_leased, self.is_closing = TRAITS[self.life]
        if self.is_busy is not was_busy:
            if was_busy:
                self.wanted.add(self.busy_since, now, now - self.busy_since)
            self.busy_since = now

    def settle(self, now: int) -> None:
        """Brings its meters up to now."""
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
        """From now on it is counted how long."""
        self.waiting_since = now
        self.card.patient_until = min(self.card.patient_until, self.overdue_at)

    @property
    def overdue_at(self) -> int:
        """By then it has waited for too long."""
        return self.waiting_since + self.demander.longest_wait_ns

    def waits(self) -> bool:
        """Whether some thread of it stands at the gate."""
        return any([presence.wants for presence in self.members.values()])  # noqa: C419 - a list is faster

    def forget_wants(self, epoch: int | None = None) -> None:
        """Whoever still waits says so again: the line has another epoch. Who ended the last himself waits on."""
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
        """For those who look."""
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
