"""What several containers of a pod share is one account, in which each stays distinct."""

from __future__ import annotations

import pytest

from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import MOST_PROCESSES, Ledger
from partage_isolation.ledger.pieces import Shared
from partage_isolation.ledger.quota_accounting import Defer, Lent, believed, lenders
from partage_isolation.names import budget_key
from partage_plugins.api.names import BudgetName, PodUid
from unit.isolation.ledger.keeping import KEY, MIB, OTHER, Kept, book, ledger_of, restarted

BUDGET = budget_key(PodUid("u1"), BudgetName("pod"))
LIMIT = 1000 * MIB


@pytest.fixture
def ledger() -> Ledger:
    return ledger_of(LIMIT, budget=BUDGET)


def begun(ledger: Ledger) -> tuple[Process, Process]:
    """A process of each container."""
    one, other = (ledger.lives.begin(key, (pid, 1), bytes([pid]) * 16) for key, pid in ((KEY, 10), (OTHER, 20)))
    assert one
    assert other
    return one, other


def take(ledger: Ledger, process: Process, amount: int) -> bool:
    return isinstance(ledger.accounting.lend(process, 0, Amounts(0, amount)), Lent)


def test_what_all_of_them_hold_counts_and_each_sees_what_is_left(ledger: Ledger) -> None:
    one, other = begun(ledger)
    assert take(ledger, one, 600 * MIB)
    assert not take(ledger, other, 500 * MIB)
    assert take(ledger, other, 300 * MIB)
    assert believed(ledger.containers[OTHER], 0) == believed(ledger.containers[KEY], 0) >= 900 * MIB


def test_one_that_wants_more_has_the_others_asked_for_what_they_do_not_use(ledger: Ledger) -> None:
    one, other = begun(ledger)
    assert take(ledger, one, 600 * MIB)
    left = LIMIT - ledger.containers[KEY].charged(0)
    assert isinstance(ledger.accounting.lend(other, 0, Amounts(0, left + MIB)), Defer)
    assert list(lenders(ledger.containers[KEY], 0, other)) == [one]


def test_the_end_of_one_keeps_the_rest_and_that_of_the_last_ends_it(ledger: Ledger) -> None:
    one, other = begun(ledger)
    assert take(ledger, one, 600 * MIB)
    assert take(ledger, other, 300 * MIB)
    rest = sum(account.total for account in other.accounts.values())
    ledger.forget(KEY)
    assert ledger.containers[OTHER].charged(0) == rest
    assert take(ledger, other, LIMIT)
    ledger.put(KEY, (book(LIMIT),), BUDGET)
    assert ledger.containers[KEY] is ledger.containers[OTHER]
    for key in (KEY, OTHER):
        ledger.forget(key)
    assert not ledger.budgets
    ledger.put(KEY, (book(LIMIT),), BUDGET)
    assert not ledger.containers[KEY].charged(0)


def test_new_limits_are_those_of_all(ledger: Ledger) -> None:
    _, other = begun(ledger)
    ledger.put(KEY, (book(100 * MIB),), BUDGET)
    assert not take(ledger, other, 101 * MIB)


def test_a_process_is_of_the_container_by_whose_socket_it_came(ledger: Ledger) -> None:
    one, _ = begun(ledger)
    assert ledger.lives.resume(KEY, one.id, one.token) is one
    assert ledger.lives.resume(OTHER, one.id, one.token) is None
    assert ledger.lives.named(OTHER, one.id, one.token) is None
    assert ledger.lives.begin(OTHER, one.id, b"n" * 16) is None


def test_one_with_too_many_processes_leaves_the_other_its_own(ledger: Ledger) -> None:
    for pid in range(MOST_PROCESSES):
        assert ledger.lives.begin(KEY, (100 + pid, 1), pid.to_bytes(16, "big"))
    assert ledger.lives.begin(KEY, (99, 1), b"x" * 16) is None
    assert ledger.lives.begin(OTHER, (99, 1), b"x" * 16)


def test_memory_that_one_makes_and_the_other_opens_counts_once(ledger: Ledger) -> None:
    one, other = begun(ledger)
    assert take(ledger, one, 600 * MIB)
    before = ledger.containers[KEY].charged(0)
    assert ledger.sharing.exported(one, 0, Shared(name=7, number=1, size=600 * MIB))
    assert ledger.sharing.opened(other, 0, Shared(name=7)) == 600 * MIB
    assert ledger.containers[OTHER].charged(0) == before
    ledger.forget(KEY)
    assert ledger.containers[OTHER].charged(0) == 600 * MIB, "its maker is gone, and the other holds it"
    ledger.sharing.closed(other, Shared(name=7))
    assert not ledger.containers[OTHER].charged(0)


def test_the_next_broker_has_the_same_sum() -> None:
    kept = Kept()
    ledger = ledger_of(LIMIT, kept, budget=BUDGET)
    one, other = begun(ledger)
    assert take(ledger, one, 600 * MIB)
    assert take(ledger, other, 200 * MIB)
    assert ledger.sharing.exported(one, 0, Shared(name=7, number=1, size=600 * MIB))
    assert ledger.sharing.opened(other, 0, Shared(name=7)) == 600 * MIB
    ledger.sharing.left(one, 0, Shared(number=1, size=600 * MIB, freed=600 * MIB))
    assert {row.key for row in kept.read_pieces()} == {BUDGET}
    again = restarted(kept, LIMIT, budget=BUDGET)
    assert again.containers[OTHER].charged(0) == ledger.containers[KEY].charged(0) >= 800 * MIB
