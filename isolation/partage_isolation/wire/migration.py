"""Movable memory on this node's cards: reports from processes, orders to them, and who may get time slices.

A card is checked every few milliseconds while a container is out or demand exceeds the card, and otherwise not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from secrets import randbelow
from typing import Final

from partage_isolation.audit.facts import MigrationFacts
from partage_isolation.errors import SpecRefused
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Budget, Process, State
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.quota_accounting import UNKNOWN_CONTEXT, Ask, Out, Patience, Refused, Verdict
from partage_isolation.migration.room import Act, Fact, Late, May, MigrationSettings, Order, Room, Turn
from partage_isolation.migration.tenant import ALL, Placed, Residency, Tenant
from partage_isolation.names import BudgetKey
from partage_isolation.store.specs import Spec
from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.wire import packets as wire
from partage_isolation.wire.connection import Answer, Session
from partage_isolation.wire.packets import Packet, What
from partage_isolation.wire.served import Registry
from partage_isolation.wire.timer import Timer
from partage_isolation.wire.timeslices import TimeSlices
from partage_plugins.api.names import CardId

_LOOK_NS: Final = 5 * MS
_SELDOM_NS: Final = SECOND
_OVER: Final = (State.DEAD, State.GONE)

CardBytes = Callable[[CardId], int | None]
"""Usable bytes of a card; None if unknown: then no container is moved out."""

_now_ns: Final = time.monotonic_ns
BY_DRIVER: Final = "driver"
"""Takes a process's place for what the driver moves of all processes at once."""


class Migration:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        ledger: Ledger,
        *,
        timeslices: TimeSlices,
        registry: Registry,
        card_bytes: CardBytes,
        pace: MigrationSettings,
        timer: Callable[[Callable[[], None]], Timer] = Timer,
    ) -> None:
        self._ledger, self._timeslices, self._registry = ledger, timeslices, registry
        self._card_bytes, self._pace = card_bytes, pace
        self._rooms: dict[CardId, Room] = {}
        self._late: dict[tuple[BudgetKey, CardId], int] = {}
        self._timer = timer(self._look)
        self.answers: Mapping[int, Answer] = {What.PLACED: self._placed}

    def close(self) -> None:
        """What is out stays out: the next broker learns of it."""
        self._timer.close()

    # ---- Containers --------------------------------------------------------------------------------------------------

    def put(self, spec: Spec) -> None:
        """Add a container, or update its share."""
        for card in spec.cards:
            by_driver = not card.movable and spec.checkpoint != "none"
            if card.movable or by_driver:
                room = self._rooms.get(card.id)
                if room is None:
                    room = self._rooms[card.id] = Room(self._pace, first_order=randbelow(1 << 31))
                share = card.share_in_force
                tenant = room.put(spec.budget_key, share, suspended=spec.is_suspended, by_driver=by_driver)
                if by_driver and not tenant.parts:
                    self._has_promise(room, spec, card.id)
        self._look()

    def _has_promise(self, room: Room, spec: Spec, card: CardId) -> None:
        """Treat its whole entitlement of the card as one part, which leaves and returns with it."""
        amount = self._promised(self._ledger.budgets[spec.budget_key], card)
        is_out = spec.checkpoint == "on-host"
        room.placed(spec.budget_key, BY_DRIVER, Placed(0, amount) if is_out else Placed(amount, 0), _now_ns())

    # ---- Memory that the driver moves on root's request --------------------------------------------------------------

    def require_known(self, spec: Spec) -> None:
        """Raises `SpecRefused` where a card's size is not known."""
        for card in spec.cards:
            if self._card_bytes(card.id) is None:
                raise SpecRefused(f"the size of card {card.id} is not known yet; is partage-advertiser running?")

    def may_go(self, key: BudgetKey) -> bool:
        """The gate is closed on all cards, its work is drained, and it was ordered to leave."""
        self._look()
        driven = [(each.stand, each.parts[BY_DRIVER]) for _, each in self._driven(key)]
        is_known = not self._ledger.accounting.is_settling
        return is_known and all(stand is Residency.OUT and not min(part.allowed, part.whole) for stand, part in driven)

    def may_come(self, key: BudgetKey) -> bool:
        """There is room for all of it."""
        self._look()
        is_known = not self._ledger.accounting.is_settling
        return is_known and all(each.parts[BY_DRIVER].allowed == ALL for _, each in self._driven(key))

    def went(self, key: BudgetKey) -> None:
        self._says(key, is_out=True)

    def came(self, key: BudgetKey) -> None:
        self._says(key, is_out=False)

    def is_in(self, key: BudgetKey) -> bool:
        """It gets time slices again, on all its cards."""
        self._look()
        return all(each.stand is Residency.IN for _, each in self._driven(key))

    def stays(self, key: BudgetKey) -> None:
        """Treat it as a container whose memory never moves."""
        for card, tenant in self._driven(key):
            self._timeslices.turn(key, card, is_in=True, share=tenant.share)
        self.drop(key)

    def _driven(self, key: BudgetKey) -> list[tuple[CardId, Tenant]]:
        of_all = ((card, room.tenants.get(key)) for card, room in self._rooms.items())
        return [(card, tenant) for card, tenant in of_all if tenant is not None and tenant.by_driver]

    def _says(self, key: BudgetKey, *, is_out: bool) -> None:
        for card, tenant in self._driven(key):
            part = tenant.parts[BY_DRIVER]
            amounts = (0, part.whole) if is_out else (part.whole, 0)
            self._rooms[card].placed(key, BY_DRIVER, Placed(*amounts, order=part.order), _now_ns())
        self._look()

    def drop(self, key: BudgetKey) -> None:
        for card, room in list(self._rooms.items()):
            room.drop(key)
            self._late.pop((key, card), None)
            if not room.tenants:
                del self._rooms[card]

    def is_away(self, key: BudgetKey, card: CardId) -> bool:
        """None of its memory is on the card, as its processes have confirmed."""
        return self._rooms[card].tenants[key].is_away

    def facts(self, key: BudgetKey, card: CardId) -> MigrationFacts | None:
        room = self._rooms.get(card)
        tenant = room.tenants.get(key) if room else None
        if tenant is None:
            return None
        return MigrationFacts(
            resident=min(tenant.resident, self._charged(key, card)) if tenant.by_driver else tenant.resident,
            moved=min(tenant.moved, self._charged(key, card)) if tenant.by_driver else tenant.moved,
            times=tenant.times_out,
            spent_ns=tenant.spent_ns,
            is_out=tenant.stand is not Residency.IN,
            is_suspended=tenant.is_suspended,
            late=self._late.get((key, card), 0),
        )

    # ---- Reports of processes ----------------------------------------------------------------------------------------

    def guarded(self, ask: Ask, *, is_context: bool = False) -> Ask:
        """Wrap a request's handler so that it grants movable memory only where the card has room for it now."""

        def asked(
            process: Process, card: int, amounts: Amounts, *, again: bool, patience: Patience = Patience.ALL
        ) -> Verdict:
            budget = self._ledger.containers.get(process.key)
            if budget is not None and budget.is_away:
                return Out()
            if budget is not None and budget.cards[card].movable:
                lent = process.accounts[card].lent if card in process.accounts else 0
                growth = UNKNOWN_CONTEXT if is_context else amounts.lent - lent
                may = self._may_take(budget, card, growth) if growth > 0 else May.NOW
                if may is May.LATER:
                    return Out()
                if may is May.NEVER:
                    budget.refused[card] += not again
                    return Refused(process.on(card).lent)
            return ask(process, card, amounts, again=again, patience=patience)

        return asked

    def _may_take(self, budget: Budget, number: int, growth: int) -> May:
        card = budget.cards[number].id
        room, left = self._rooms.get(card), budget.room(number)
        free = self._free(card) if room else None
        if room is None or free is None or budget.key not in room.tenants:
            return May.NOW
        may = room.may_take(budget.key, max(0, min(growth, left)), self._known(room, card), free, _now_ns())
        if may is May.LATER:
            self._timer.set(_now_ns())
        return may

    def _placed(self, session: Session, packet: Packet) -> None:
        process = session.process
        budget = self._ledger.containers[process.key]
        card, said = budget.cards[packet.card].id, packet.placed
        room = self._rooms.get(card)
        if room is None or budget.key not in room.tenants or room.tenants[budget.key].by_driver:
            return
        room.placed(budget.key, process, said, _now_ns())
        account, part = process.accounts.get(packet.card), room.tenants[budget.key].parts[process]
        if account is not None:
            # A sample of the process is compared only with what is on the card, and not while that changes.
            account.moved = min(part.placed.moved, account.lent) if part.is_settled else None
        self._decide(card, room)
        self._set()

    # ---- Actions -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        for card, room in list(self._rooms.items()):
            self._decide(card, room)
        self._set()

    def _set(self) -> None:
        rooms = self._rooms.values()
        every_ns = _LOOK_NS if any(room.is_crowded for room in rooms) else _SELDOM_NS
        self._timer.set(_now_ns() + every_ns if rooms else None)

    def _decide(self, card: CardId, room: Room) -> None:
        free = self._free(card)
        if free is None:
            return
        self._forget_dead(room)
        acts = room.decide(self._known(room, card), free, _now_ns())
        self._late = {place: held for place, held in self._late.items() if place[1] != card}
        for act in acts:
            self._act(card, act)

    def _act(self, card: CardId, act: Act) -> None:
        match act:
            case Turn(key, is_in, share):
                self._timeslices.turn(key, card, is_in=is_in, share=share)
            case Order(key, process, allowed, number):
                self._tell(key, card, process, allowed, number)
            case Late(key, held):
                self._late[key, card] = self._late.get((key, card), 0) + held

    def _tell(self, key: BudgetKey, card: CardId, process: object, allowed: int, number: int) -> None:
        budget = self._ledger.budgets[key]
        if isinstance(process, Process) and (place := budget.card_number(card)) in process.accounts:
            process.accounts[place].moved = None
        for served in self._registry.of(key):
            for session in served.sessions.values():
                if session.process is process and session.signals is not None:
                    place = served.budget.card_number(card)
                    if place is not None:
                        session.signals.hint(wire.place_hint(place, allowed, number))

    # ---- Current state -----------------------------------------------------------------------------------------------

    def _forget_dead(self, room: Room) -> None:
        for key, tenant in room.tenants.items():
            for process in [each for each in tenant.parts if isinstance(each, Process) and each.state in _OVER]:
                room.gone(key, process)

    def _known(self, room: Room, card: CardId) -> Mapping[BudgetKey, Fact]:
        return {key: self._fact(key, card) for key in room.tenants}

    def _fact(self, key: BudgetKey, card: CardId) -> Fact:
        entry = self._timeslices.entry(key, card)
        charged = self._charged(key, card)
        tenant = self._rooms[card].tenants.get(key)
        if tenant is not None and tenant.by_driver:
            charged = tenant.whole
        if entry is None:
            return Fact(charged, wants=False, held_ns=0, is_at_rest=True)
        return Fact(charged, wants=entry.is_busy, held_ns=entry.held_ns, is_at_rest=entry.is_at_rest)

    def _charged(self, key: BudgetKey, card: CardId) -> int:
        budget = self._ledger.budgets.get(key)
        number = budget.card_number(card) if budget else None
        return _whole(budget, number) if budget is not None and number is not None else 0

    def _free(self, card: CardId) -> int | None:
        """Bytes of the card that non-movable containers leave, which may use all that they were granted."""
        whole = self._card_bytes(card)
        return None if whole is None else whole - sum(self._others(card))

    def _others(self, card: CardId) -> Iterator[int]:
        tenants = self._rooms[card].tenants if card in self._rooms else ()
        for key, budget in self._ledger.budgets.items():
            number = budget.card_number(card)
            if number is not None and not budget.cards[number].movable and key not in tenants:
                yield self._promised(budget, card)

    def _promised(self, budget: Budget, card: CardId) -> int:
        number = budget.card_number(card)
        if number is None:
            return 0
        on_top = 0 if budget.context_in_limit else budget.fixed(number)
        return max(budget.cards[number].memory_in_force + on_top, _whole(budget, number))


def _whole(budget: Budget, number: int) -> int:
    asked, fixed = budget.charges.on(number)
    return asked + fixed + budget.shared(number)
