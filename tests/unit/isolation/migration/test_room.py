"""Which containers are on a simulated card whose link takes time: never more than fit, and fairly."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_isolation.migration.room import Fact, May, MigrationSettings, Order
from partage_isolation.migration.tenant import Placed
from partage_isolation.names import BudgetKey
from support.extent import examples
from unit.isolation.migration.card import GIB, LINK, PIECE, Holder, SimulatedCard, seconds

pytestmark = pytest.mark.slow


def holder(name: str, share: int, whole_gib: float, **more: object) -> Holder:
    return Holder(BudgetKey(name), share, int(whole_gib * GIB), **more)  # type: ignore[arg-type]


def spend(card: SimulatedCard, for_s: float) -> None:
    for _ in card.run(seconds(for_s)):
        assert card.held() <= card.room_bytes


def test_where_all_have_room_nothing_moves() -> None:
    card = SimulatedCard(80 * GIB, [holder("a", 300, 40), holder("b", 700, 40)])
    spend(card, 10)
    assert all(each.moved == 0 and each.is_in for each in card.holders)


@pytest.mark.parametrize(("one", "other"), [(500, 500), (300, 700), (100, 900)])
def test_two_that_do_not_fit_together_get_their_shares_in_turns(one: int, other: int) -> None:
    """No more than a tenth of the time goes into moves, beyond those of the first round."""
    first, second = holder("a", one, 60), holder("b", other, 60)
    second.moved = second.whole
    card = SimulatedCard(80 * GIB, [first, second], MigrationSettings(longest_wait_ns=seconds(120)))
    spend(card, 200)
    got = first.held_ns + second.held_ns
    assert first.held_ns / got == pytest.approx(one / 1000, abs=0.03)
    assert got / card.now > 0.88


def test_three_of_which_two_fit_share_by_their_shares() -> None:
    holders = [holder("a", 200, 30), holder("b", 300, 30), holder("c", 500, 30)]
    holders[2].moved = holders[2].whole
    card = SimulatedCard(70 * GIB, holders)
    spend(card, 200)
    got = sum(each.held_ns for each in holders)
    for each in holders:
        assert each.held_ns / got == pytest.approx(each.share / 1000, abs=0.06)


@pytest.mark.parametrize(("many", "gib", "computes"), [(3, 60, 0.88), (4, 50, 0.92), (5, 30, 0.99)])
def test_however_many_take_turns_a_tenth_of_the_link_is_enough(many: int, gib: int, computes: float) -> None:
    """No two come at the same time, so that none is late because of another one."""
    holders = [holder(f"h{number}", 200, gib) for number in range(many)]
    for each in holders[80 // gib :]:
        each.moved, each.allowed = each.whole, 0
    card = SimulatedCard(80 * GIB, holders, MigrationSettings(longest_wait_ns=seconds(120)))
    for _ in card.run(seconds(100)):
        assert card.held() <= card.room_bytes
        assert sum(min(each.allowed, each.whole) - each.resident >= PIECE for each in holders) <= 1
    carried = sum(tenant.carried for tenant in card.room.tenants.values())
    assert carried / 2 / LINK < 0.13 * card.now
    assert sum(each.held_ns for each in holders) > computes * card.now


def test_the_idle_leave_at_once() -> None:
    idle, busy = holder("a", 500, 60, wants=False), holder("b", 500, 60)
    busy.moved = busy.whole
    card = SimulatedCard(80 * GIB, [idle, busy])
    spend(card, 3)
    assert busy.is_in
    assert busy.moved == 0
    assert idle.moved == 40 * GIB


def test_a_part_of_who_is_next_comes_while_another_computes() -> None:
    first, second = holder("a", 500, 60), holder("b", 500, 60)
    second.moved = second.whole
    card = SimulatedCard(80 * GIB, [first, second])
    spend(card, 1)
    assert first.is_in
    assert second.resident == 20 * GIB


def test_nobody_waits_longer_than_was_promised() -> None:
    """Also beside one with all the shares: what is moved for it is then worth less."""
    great, small = holder("a", 990, 60), holder("b", 10, 60)
    small.moved = small.whole
    card = SimulatedCard(80 * GIB, [great, small], MigrationSettings(longest_wait_ns=seconds(10)))
    waited = longest = 0
    for _ in card.run(seconds(100)):
        waited = 0 if small.is_in and not small.moved else waited + 1
        longest = max(longest, waited)
    assert longest * 0.005 < 10 + 3


def test_who_grows_gets_room_at_once_and_the_other_comes_back() -> None:
    grows, other = holder("a", 500, 30), holder("b", 500, 40)
    card = SimulatedCard(80 * GIB, [grows, other])
    spend(card, 1)
    answers = list[bool]()
    for _ in card.run(seconds(3)):
        if not any(answers):
            may = card.room.may_take(grows.key, 20 * GIB, card.facts(), card.room_bytes, card.now)
            answers.append(may is May.NOW)
            if answers[-1]:
                grows.whole += 20 * GIB
        assert card.held() <= card.room_bytes
    assert answers[-1]
    assert len(answers) > 1
    spend(card, 60)
    assert other.held_ns > seconds(10)


def test_what_could_never_be_beside_what_others_can_not_move_is_refused() -> None:
    """At first it may only seem so: what others have is known a moment late."""
    grows, other = holder("a", 500, 30), holder("b", 500, 30, stays=20 * GIB)
    card = SimulatedCard(80 * GIB, [grows, other])
    answers = list[May]()
    for _ in card.run(seconds(4)):
        answers.append(card.room.may_take(grows.key, 31 * GIB, card.facts(), card.room_bytes, card.now))
    assert answers[0] is May.LATER
    assert May.NEVER in answers
    assert May.NOW not in answers


def test_who_is_suspended_leaves_wholly_and_comes_back_only_when_it_is_resumed() -> None:
    """Also if no other container is there and it wants the card all the time."""
    only = holder("a", 500, 60)
    card = SimulatedCard(80 * GIB, [only])
    spend(card, 1)
    card.room.put(only.key, 500, suspended=True)
    spend(card, 5)
    assert only.moved == only.whole
    assert not only.is_in
    assert not only.late
    assert not card.room.is_crowded
    card.room.put(only.key, 500)
    spend(card, 5)
    assert only.moved == 0
    assert only.is_in


def test_a_suspended_container_is_away_only_once_its_processes_confirmed_it() -> None:
    """Also one that seems to hold nothing: a process reports what it took up to a second later."""
    only = holder("a", 500, 0)
    card = SimulatedCard(80 * GIB, [only])
    tenant = card.room.put(only.key, 500, suspended=True)
    only.is_in, only.whole = False, 6 * GIB
    facts = {only.key: Fact(6 * GIB, wants=True, held_ns=0, is_at_rest=True)}
    (order,) = [act for act in card.room.decide(facts, 80 * GIB, 1) if isinstance(act, Order)]
    assert order.allowed == 0
    assert not tenant.is_away
    card.room.placed(only.key, only.key, Placed(6 * GIB, 0, 0, order.number, 0), 2)
    assert not tenant.is_away
    card.room.placed(only.key, only.key, Placed(0, 6 * GIB, 0, order.number, 0), 3)
    assert tenant.is_away


def test_who_the_driver_takes_away_leaves_for_nobody_else_and_has_its_room_again_at_once() -> None:
    taken, other = holder("a", 500, 60, by_driver=True), holder("b", 500, 60)
    other.moved = other.whole
    card = SimulatedCard(80 * GIB, [taken, other], MigrationSettings(longest_wait_ns=seconds(1)))
    spend(card, 10)
    assert (taken.is_in, taken.moved) == (True, 0)
    card.room.put(taken.key, 500, suspended=True, by_driver=True)
    spend(card, 5)
    assert (taken.moved, other.is_in, other.moved) == (taken.whole, True, 0)
    card.room.put(taken.key, 500, by_driver=True)
    spend(card, 5)
    assert (taken.is_in, taken.moved) == (True, 0)


def test_who_the_driver_took_away_comes_back_once_nobody_is_left_to_leave_whatever_others_were_promised() -> None:
    """For example beside containers that have ended, or do not run at the same time."""
    taken, other = holder("a", 500, 60, by_driver=True), holder("b", 500, 60, wants=False)
    taken.moved, taken.allowed, taken.order, taken.wants = taken.whole, 0, 77, False
    card = SimulatedCard(50 * GIB, [taken, other])
    for _ in card.run(seconds(5)):
        pass
    assert (taken.is_in, taken.moved, other.resident) == (True, 0, 0)


def test_who_is_told_to_leave_and_does_not_is_late() -> None:
    stubborn, other = holder("a", 500, 60, obeys=False), holder("b", 500, 60)
    other.moved = other.whole
    card = SimulatedCard(80 * GIB, [stubborn, other])
    spend(card, 60)
    assert stubborn.late
    assert not other.late


def test_an_order_that_is_lost_is_said_again() -> None:
    first, second = holder("a", 500, 60), holder("b", 500, 60)
    second.moved = second.whole
    card = SimulatedCard(80 * GIB, [first, second], orders_lost=3)
    spend(card, 60)
    assert min(first.held_ns, second.held_ns) > seconds(10)
    assert not first.late
    assert not second.late


def test_who_was_out_when_the_broker_began_comes_back() -> None:
    only = holder("a", 500, 60)
    only.moved, only.allowed, only.order = only.whole, 0, 77
    card = SimulatedCard(80 * GIB, [only])
    spend(card, 5)
    assert only.is_in
    assert only.moved == 0


def test_the_last_one_gets_all_that_another_left() -> None:
    first, second = holder("a", 500, 60), holder("b", 500, 60)
    second.moved = second.whole
    card = SimulatedCard(80 * GIB, [first, second])
    spend(card, 20)
    card.remove(first)
    before = second.held_ns
    spend(card, 10)
    assert second.held_ns - before > seconds(8)


class Crowd:
    """Containers that come, go, rest and grow at random."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311
        self.card = SimulatedCard(80 * GIB, [], MigrationSettings(longest_wait_ns=seconds(5)))
        self._names = iter(range(1000))

    def step(self) -> None:
        what = self.rng.choice((self._come, self._go, self._want, self._grow, self._pass))
        if self.card.holders or what == self._come:
            what()
        spend(self.card, self.rng.choice((0.01, 0.1, 1)))

    def _come(self) -> None:
        if len(self.card.holders) < 5:
            self.card.add(holder(f"h{next(self._names)}", self.rng.choice((0, 50, 200)), 0))

    def _go(self) -> None:
        self.card.remove(self.rng.choice(self.card.holders))

    def _want(self) -> None:
        some = self.rng.choice(self.card.holders)
        some.wants = not some.wants

    def _grow(self) -> None:
        card, some = self.card, self.rng.choice(self.card.holders)
        more = min(self.rng.randrange(1, 30) * GIB, 60 * GIB - some.whole)
        for _ in card.run(seconds(1)):
            assert card.held() <= card.room_bytes
            if more and card.room.may_take(some.key, more, card.facts(), card.room_bytes, card.now) is May.NOW:
                some.whole, more = some.whole + more, 0

    def _pass(self) -> None:
        pass


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**9))
def test_never_more_than_the_card_has_whatever_comes_goes_grows_and_rests(seed: int) -> None:
    """In the end all that want the card get it."""
    crowd = Crowd(seed)
    for _ in range(60):
        crowd.step()
    holders = crowd.card.holders
    for each in holders:
        each.wants = True
    before = {each.key: each.held_ns for each in holders}
    spend(crowd.card, 40)
    for each in holders:
        assert each.held_ns > before[each.key] or not each.whole
        assert not each.late
