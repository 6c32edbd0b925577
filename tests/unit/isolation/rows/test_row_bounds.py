"""Whoever takes all the rows that it can leaves room for others: they begin, and have memory, as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import MOST_PROCESSES, Ledger
from partage_isolation.ledger.loans import Lent
from partage_isolation.ledger.pieces import MOST_NAMES, Shared
from partage_isolation.store.row_bounds import LEAST, NAMESPACE_PART, OWNER_PART, RESERVE, RowBounds, Sort
from partage_isolation.store.rows_file import ROWS, RowsFile
from partage_plugins.vocabulary.names import ContainerKey
from unit.isolation.ledger.keeping import MIB, book

VICTIM = ContainerKey("f" * 32)
Begin = Callable[..., Process]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[RowsFile]:
    file = RowsFile(tmp_path / "rows", boot="boot-1")
    yield file
    file.close()


@pytest.fixture
def ledger(file: RowsFile) -> Ledger:
    ledger = Ledger(file)
    ledger.put(VICTIM, (book(1 << 40),), namespace="victims")
    return ledger


@pytest.fixture
def begin(ledger: Ledger) -> Begin:
    pids = iter(range(1, 1 << 20))

    def begun(container: ContainerKey) -> Process:
        pid = next(pids)
        process = ledger.lives.begin(container, (pid, 1), pid.to_bytes(16, "big"))
        assert process is not None
        return process

    return begun


def hostile(ledger: Ledger, number: int, namespace: str = "hostile") -> ContainerKey:
    key = ContainerKey(f"{number:032x}")
    ledger.put(key, (book(1 << 40),), namespace=namespace)
    return key


def exported(ledger: Ledger, process: Process) -> int:
    """As many names as it gets."""
    names = range(1, MOST_NAMES // 4)
    return sum(ledger.sharing.exported(process, 0, Shared(name, name, MIB)) for name in names)


def lives(ledger: Ledger, process: Process) -> None:
    """It has memory, and shares it."""
    assert isinstance(ledger.lending.lend(process, 0, Amounts(MIB, MIB)), Lent)
    assert ledger.sharing.exported(process, 0, Shared(1, 1, MIB))


def test_what_anybody_may_have_takes_one_row_however_many_processes_live(
    ledger: Ledger, file: RowsFile, begin: Begin
) -> None:
    crowd = [begin(hostile(ledger, 1)) for _ in range(MOST_PROCESSES)]
    before = file.free
    for number in range(1, 151):
        assert ledger.sharing.exported(crowd[0], 0, Shared(number, number, MIB), anybodys=True)
        ledger.sharing.left(crowd[0], 0, Shared(number=number, size=MIB // 2, freed=MIB // 2))
    assert file.free == before - 151, "a row for each, and one for what the maker has"
    lives(ledger, begin(VICTIM))


def test_one_container_gets_a_part_of_the_rows(ledger: Ledger, file: RowsFile, begin: Begin) -> None:
    attacker = begin(hostile(ledger, 1))
    assert exported(ledger, attacker) <= (ROWS - RESERVE) // OWNER_PART
    assert file.bounds.refused
    lives(ledger, begin(VICTIM))


def test_a_namespace_gets_a_part_of_the_rows_however_many_containers_it_has(
    ledger: Ledger, file: RowsFile, begin: Begin
) -> None:
    taken = sum(exported(ledger, begin(hostile(ledger, number))) for number in range(1, 17))
    assert taken <= (ROWS - RESERVE) // NAMESPACE_PART
    lives(ledger, begin(VICTIM))


@pytest.mark.slow
def test_many_namespaces_leave_room_for_whoever_comes(ledger: Ledger, begin: Begin) -> None:
    for number in range(1, 41):
        key = hostile(ledger, number, namespace=f"hostile-{number}")
        exported(ledger, begin(key))
        for pid in range(MOST_PROCESSES // 4):
            ledger.lives.begin(key, (number << 20, pid), (number << 20 | pid).to_bytes(16, "big"))
    lives(ledger, begin(VICTIM))


@pytest.mark.slow
def test_a_sibling_s_names_leave_the_reserve_to_processes_of_their_own_namespace(ledger: Ledger, begin: Begin) -> None:
    for number in range(1, 41):
        exported(ledger, begin(hostile(ledger, number)))
    newcomer = begin(hostile(ledger, 41))
    assert isinstance(ledger.lending.lend(newcomer, 0, Amounts(MIB, MIB)), Lent)


def test_what_was_refused_leaves_nothing_behind(ledger: Ledger, file: RowsFile, begin: Begin) -> None:
    attacker = begin(hostile(ledger, 1))
    exported(ledger, attacker)
    before = file.free
    for number in range(10_000, 10_100):
        assert not ledger.sharing.exported(attacker, 0, Shared(number, number, MIB))
        assert ledger.containers[attacker.key].pieces.made(attacker.id, 0, number) is None
    assert file.free == before
    ledger.lives.died(attacker, 1)
    assert file.free == ROWS


def test_a_next_broker_has_the_same_bounds(ledger: Ledger, file: RowsFile, begin: Begin, tmp_path: Path) -> None:
    attacker = begin(hostile(ledger, 1))
    exported(ledger, attacker)
    again = RowsFile(tmp_path / "rows", boot="boot-1")
    again.belongs(attacker.key, "hostile")
    for sort in Sort:
        assert again.bounds.has(attacker.key, sort, again.free) == file.bounds.has(attacker.key, sort, file.free)
    again.close()


def test_rows_that_are_given_back_may_be_taken_again() -> None:
    bounds, free = RowBounds(), 10_000
    while bounds.has("a", Sort.PIECE, free):
        bounds.takes("a", Sort.PIECE)
        free -= 1
    bounds.takes("a", Sort.PIECE, -1)
    assert bounds.has("a", Sort.PIECE, free + 1)


def test_a_namespace_that_is_told_later_counts_what_was_taken_before() -> None:
    bounds, free = RowBounds(), 10_000
    for owner in "abcd":
        bounds.takes(owner, Sort.PIECE, 170)
    assert bounds.has("e", Sort.PIECE, free)
    for owner in "abcde":
        bounds.belongs(owner, "n")
    assert bounds.has("e", Sort.PIECE, free)
    bounds.takes("d", Sort.PIECE, 100)
    assert not bounds.has("e", Sort.PIECE, free)
    bounds.belongs("d", "")
    assert bounds.has("e", Sort.PIECE, free)


def test_the_first_processes_of_a_container_have_room_as_long_as_a_row_is_free() -> None:
    bounds = RowBounds()
    bounds.takes("a", Sort.PROCESS, LEAST - 1)
    assert bounds.has("a", Sort.PROCESS, 1)
    assert not bounds.has("a", Sort.PROCESS, 0)
    bounds.takes("a", Sort.PROCESS)
    assert not bounds.has("a", Sort.PROCESS, 1)
