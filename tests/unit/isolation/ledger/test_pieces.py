"""Memory that several processes hold is charged once: to its maker while it has it, then to the container."""

from __future__ import annotations

from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.pieces import MOST_NAMES, Piece, Shared
from partage_isolation.ledger.quota_accounting import Patience
from partage_isolation.names import BudgetKey, own_budget
from unit.isolation.ledger.keeping import KEY, MIB, Kept, charged, ledger_of, process_of, restarted, sample

GIB = 1 << 30
NAME, NUMBER = 4711, 7
SIZE = 100 * MIB
PIECE = Shared(NAME, NUMBER, SIZE)
GIVEN = Shared(0, NUMBER, SIZE, SIZE)
OPENED = Shared(NAME)


def maker_of(ledger: Ledger, pid: int = 10, lent: int = SIZE) -> Process:
    """A process with memory that others can open."""
    process = process_of(ledger, pid)
    ledger.accounting.lend(process, 0, Amounts(0, lent), patience=Patience.NONE)
    ledger.accounting.returned(process, 0, Amounts(lent, lent))
    sample(ledger, {pid: lent})
    assert ledger.sharing.exported(process, 0, PIECE)
    return process


def shared(ledger: Ledger) -> int:
    return ledger.containers[KEY].shared(0)


def test_what_nobody_has_open_is_its_maker_s_credit_when_he_frees_it() -> None:
    ledger = ledger_of(GIB)
    maker = maker_of(ledger)
    assert ledger.sharing.left(maker, 0, GIVEN) == SIZE
    assert (charged(ledger), shared(ledger)) == (SIZE, 0)


def test_a_dead_opener_has_it_until_the_card_shows_nothing_of_it() -> None:
    ledger = ledger_of(GIB)
    maker, one = maker_of(ledger), process_of(ledger, 11)
    ledger.accounting.lend(one, 0, Amounts(0, MIB))
    sample(ledger, {10: SIZE, 11: MIB})
    ledger.sharing.opened(one, 0, OPENED)
    ledger.sharing.left(maker, 0, GIVEN)
    ledger.lives.died(one, 1)
    sample(ledger, {11: MIB})
    assert shared(ledger) == SIZE
    sample(ledger, {})
    assert shared(ledger) == 0


def test_of_a_piece_that_shrinks_only_what_went_is_left() -> None:
    ledger = ledger_of(GIB)
    maker, one = maker_of(ledger), process_of(ledger, 11)
    ledger.sharing.opened(one, 0, OPENED)
    assert ledger.sharing.left(maker, 0, Shared(0, NUMBER, SIZE // 4, SIZE // 4)) == SIZE * 3 // 4
    assert (charged(ledger), shared(ledger)) == (SIZE, SIZE // 4)
    ledger.sharing.exported(maker, 0, Shared(0, NUMBER, 2 * SIZE))
    ledger.sharing.closed(one, OPENED)
    assert shared(ledger) == 0


def test_a_maker_is_rid_of_no_more_than_what_is_left_to_others_whatever_he_says() -> None:
    ledger = ledger_of(GIB)
    maker = maker_of(ledger)
    ledger.sharing.opened(process_of(ledger, 11), 0, OPENED)
    assert ledger.sharing.left(maker, 0, Shared(0, NUMBER, MIB, SIZE)) == SIZE - MIB
    assert (charged(ledger), shared(ledger)) == (SIZE, MIB)


def test_what_has_no_name_is_charged_until_all_who_lived_when_it_was_freed_are_gone() -> None:
    ledger = ledger_of(GIB)
    maker, one = maker_of(ledger), process_of(ledger, 11)
    assert ledger.sharing.exported(maker, 0, PIECE, anybodys=True)
    ledger.sharing.left(maker, 0, GIVEN)
    late = process_of(ledger, 12)
    assert shared(ledger) == SIZE
    ledger.lives.died(late, 1)
    assert shared(ledger) == SIZE
    ledger.lives.died(one, 2)
    assert shared(ledger) == 0


def test_each_holder_that_an_earlier_version_wrote_down_has_it_until_it_is_gone() -> None:
    kept = Kept()
    ledger = ledger_of(GIB, kept)
    maker, one, other = process_of(ledger, 10), process_of(ledger, 11), process_of(ledger, 12)
    for process in (maker, one, other):
        process.since = 0
        ledger.entries.changed(process)
    holders = {(one.id, NAME), (other.id, NAME)}
    left = Piece(0, maker.id, NUMBER, is_anybodys=True, size=SIZE, given=SIZE, left=SIZE, names={NAME}, holders=holders)
    kept.keep_piece(own_budget(KEY), left)
    again = restarted(kept, GIB)
    for process in (one, other):
        assert shared(again) == SIZE
        again.lives.died(again.containers[KEY].processes[process.id], 1)
    assert shared(again) == 0


def test_what_nobody_here_made_is_charged_to_whoever_opens_it_and_must_fit() -> None:
    ledger = ledger_of(GIB)
    one = process_of(ledger, 11)
    assert ledger.sharing.opened(one, 0, OPENED) == 0
    assert ledger.sharing.opened(one, 0, Shared(NAME, size=GIB + 1)) is None
    assert charged(ledger) == 0
    assert ledger.sharing.opened(one, 0, Shared(NAME, size=SIZE)) == SIZE
    assert charged(ledger) == SIZE
    ledger.sharing.closed(one, OPENED)
    assert charged(ledger) == 0


def test_a_liar_raises_its_own_container_s_charge_and_nothing_else() -> None:
    ledger = ledger_of(GIB)
    maker, liar = maker_of(ledger), process_of(ledger, 11)
    assert ledger.sharing.opened(liar, 0, Shared(NAME, size=3 * SIZE)) == 3 * SIZE
    assert charged(ledger) == 3 * SIZE
    ledger.sharing.left(liar, 0, GIVEN)
    ledger.sharing.left(maker, 0, Shared(0, NUMBER, 1 << 63, 1 << 63))
    assert charged(ledger) >= SIZE
    ledger.sharing.closed(liar, OPENED)
    assert charged(ledger) == 0


def test_no_more_names_than_there_is_room_for() -> None:
    ledger = ledger_of(GIB)
    maker = maker_of(ledger)
    assert all(ledger.sharing.exported(maker, 0, Shared(name, name, MIB)) for name in range(1, MOST_NAMES))
    assert not ledger.sharing.exported(maker, 0, Shared(1 << 40, 1 << 40, MIB))
    assert ledger.sharing.opened(process_of(ledger, 11), 0, Shared(1)) is None
    assert ledger.sharing.exported(maker, 0, Shared(1, 1, MIB))


class Counting(Kept):
    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def keep_piece(self, key: BudgetKey, piece: Piece) -> bool:
        self.written += 1
        return super().keep_piece(key, piece)


def test_a_packet_costs_as_many_rows_as_it_writes() -> None:
    ledger = ledger_of(GIB)
    maker = maker_of(ledger)
    for name in range(1, 101):
        ledger.sharing.exported(maker, 0, Shared(name, 1, MIB))
    before = ledger.entries.work
    ledger.sharing.exported(maker, 0, Shared(1, 1, 2 * MIB))
    assert ledger.entries.work - before == 100
    ledger.sharing.exported(maker, 0, Shared(101, 2, MIB))
    assert ledger.entries.work - before == 101


def test_a_death_costs_what_the_process_had_however_much_others_have() -> None:
    kept = Counting()
    ledger = ledger_of(GIB, kept)
    maker, one, other = maker_of(ledger), process_of(ledger, 11), process_of(ledger, 12)
    for number in range(100, 400):
        ledger.sharing.exported(maker, 0, Shared(number, number, MIB), anybodys=True)
        ledger.sharing.left(maker, 0, Shared(number=number, size=1, freed=1))
    assert ledger.sharing.opened(other, 0, OPENED)
    kept.written = 0
    ledger.lives.died(one, 1)
    assert kept.written == 0
    ledger.lives.died(other, 1)
    assert kept.written == 301, "what it had open, and what only it could have had"


def test_all_that_was_kept_of_it_goes_with_the_container() -> None:
    kept = Kept()
    ledger = ledger_of(GIB, kept)
    maker, one = maker_of(ledger), process_of(ledger, 11)
    ledger.sharing.opened(one, 0, OPENED)
    ledger.sharing.left(maker, 0, GIVEN)
    ledger.forget(KEY)
    assert not kept.rows
    assert not kept.pieces
