"""Rows survive a broker that is killed between any two stores; an incomplete file is reported and set aside.

A container that takes all the rows that it can leaves room for others: their processes start and have memory as usual.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.errors import NoRows
from partage_isolation.ledger.account import Account, Amounts
from partage_isolation.ledger.budget import Process, State
from partage_isolation.ledger.ledger import MOST_PROCESSES, Ledger
from partage_isolation.ledger.pieces import MOST_NAMES, Shared
from partage_isolation.ledger.quota_accounting import Lent
from partage_isolation.names import own_budget
from partage_isolation.store.row_bounds import LEAST, NAMESPACE_PART, OWNER_PART, RESERVE, RowBounds, Sort
from partage_isolation.store.rows import PLACE_BYTES, Damaged, Row, grouped, pack_empty, pack_row, read_row
from partage_isolation.store.rows_file import ROWS, RowsFile
from partage_plugins.api.names import ContainerKey
from unit.isolation.ledger.keeping import MIB, book

KEY = ContainerKey("ab" * 16)
BOOT = "boot-1"
_HEADER = 4096


def process_of(pid: int = 10, *accounts: Account, start: int = 7) -> Process:
    return Process(KEY, pid, start, pid.to_bytes(16, "big"), State.LIVE, dict(enumerate(accounts)))


@contextmanager
def opened(path: Path, *, boot: str = BOOT, rows: int = 16) -> Generator[RowsFile]:
    file = RowsFile(path, boot=boot, rows=rows)
    try:
        yield file
    finally:
        file.close()


def found_in(path: Path, *, boot: str = BOOT) -> tuple[Row, ...]:
    with opened(path, boot=boot) as file:
        return file.found()


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    process = process_of(10, Account(1, 2, 3, 4, used=5, hidden=6, is_made=True), Account(lent=9))
    with opened(tmp_path / "rows") as file:
        assert file.keep(process)
        assert file.keep(process, 0)
        assert file.keep(process, 1)
    ((own, cards),) = grouped(found_in(tmp_path / "rows"))
    assert (own.key, own.pid, own.start, own.token, own.state) == (KEY, 10, 7, process.token, State.LIVE)
    assert [cards[number].account() for number in (0, 1)] == [process.accounts[0], process.accounts[1]]


def test_the_last_version_is_in_force_however_often_it_was_written(tmp_path: Path) -> None:
    process = process_of(10, Account())
    with opened(tmp_path / "rows") as file:
        file.keep(process)
        for lent in range(1001):
            process.accounts[0].lent = lent
            file.keep(process, 0)
    assert [row.lent for row in found_in(tmp_path / "rows") if row.card == 0] == [1000]


def test_what_was_dropped_is_not_found_and_its_room_is_free(tmp_path: Path) -> None:
    with opened(tmp_path / "rows", rows=4) as file:
        for pid in range(1, 100):
            process = process_of(pid, Account(lent=pid))
            assert file.keep(process)
            assert file.keep(process, 0)
            file.drop(process, 0)
            file.drop(process)
        assert file.free == 4
    assert found_in(tmp_path / "rows") == ()


def test_a_full_file_says_so(tmp_path: Path) -> None:
    with opened(tmp_path / "rows", rows=2) as file:
        assert [file.keep(process_of(pid)) for pid in (1, 2, 3)] == [True, True, False]
        assert file.keep(process_of(1))


def test_a_row_without_its_process_belongs_to_nobody(tmp_path: Path) -> None:
    process = process_of(10, Account(lent=1))
    with opened(tmp_path / "rows") as file:
        file.keep(process, 0)
    assert list(grouped(found_in(tmp_path / "rows"))) == []


@given(st.integers(min_value=0, max_value=PLACE_BYTES), st.integers(min_value=1, max_value=2**63))
def test_a_write_that_was_cut_off_anywhere_leaves_the_old_row(cut: int, lent: int) -> None:
    """The process is killed during the copy: the beginning of the place is new, the rest is old."""
    process = process_of(10, Account(lent=1))
    old, before = pack_row(2, process, 0), pack_row(1, process, 0)
    process.accounts[0].lent = lent
    new = pack_row(3, process, 0)
    place = new[:cut] + before[cut:]
    number, _, row = read_row((old, place))
    assert isinstance(row, Row)
    assert (number, row.lent) in {(2, 1), (3, lent)}
    assert number == 3 or place != new


@given(st.integers(min_value=0, max_value=PLACE_BYTES))
def test_a_drop_that_was_cut_off_anywhere_is_done_or_not(cut: int) -> None:
    process = process_of(10, Account(lent=5))
    new, before = pack_empty(3), pack_row(1, process, 0)
    number, _, row = read_row((pack_row(2, process, 0), new[:cut] + before[cut:]))
    assert (number, row is None) in {(2, False), (3, True)}


@given(st.binary(min_size=PLACE_BYTES, max_size=PLACE_BYTES), st.binary(min_size=PLACE_BYTES, max_size=PLACE_BYTES))
def test_bytes_that_nobody_wrote_are_no_row(one: bytes, other: bytes) -> None:
    try:
        _, _, row = read_row((one, other))
    except Damaged:
        return
    assert row is None


def test_a_damaged_row_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    with opened(tmp_path / "rows") as file:
        file.keep(process_of(1))
        file.keep(process_of(2))
    with (tmp_path / "rows").open("r+b") as raw:
        raw.seek(_HEADER + 40)
        raw.write(b"x" * 200)
    with opened(tmp_path / "rows") as file:
        assert "1 of its rows" in file.lost
        assert [row.pid for row in file.found()] == [2]
        assert file.free == 14


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda raw: raw.truncate(100), "cut off"),
        (lambda raw: raw.truncate(_HEADER + 300), "cut off"),
        (lambda raw: raw.write(b"something else altogether" * 10), "no file of rows"),
        (lambda raw: (raw.seek(16), raw.write(b"\x09\0\0\0")), "layout is 9"),
        (lambda raw: raw.truncate(0), "cut off"),
    ],
)
def test_a_file_that_is_not_ours_is_set_aside_and_told(tmp_path: Path, spoil: object, why: str) -> None:
    path = tmp_path / "rows"
    with opened(path) as file:
        file.keep(process_of(1))
    with path.open("r+b") as raw:
        spoil(raw)  # type: ignore[operator]
    with opened(path) as file:
        assert why in file.lost
        assert file.found() == ()
        assert file.keep(process_of(2))
    assert path.with_name("rows.damaged").exists()
    assert [row.pid for row in found_in(path)] == [2]


def test_rows_of_another_boot_are_forgotten_in_silence(tmp_path: Path) -> None:
    with opened(tmp_path / "rows") as file:
        file.keep(process_of(1))
    with opened(tmp_path / "rows", boot="boot-2") as file:
        assert (file.lost, file.found()) == ("", ())


def test_longer_rows_of_a_later_version_are_read_and_written(tmp_path: Path) -> None:
    """A downgrade: the later version has added fields, so that its places are longer."""
    path, length = tmp_path / "rows", 2 * PLACE_BYTES
    with opened(path, rows=4):
        pass
    header = bytearray(path.read_bytes()[:_HEADER])
    header[20:24] = length.to_bytes(4, "little")
    place = pack_row(1, process_of(5), None, place_bytes=length)
    path.write_bytes(bytes(header) + bytes(length) + place + bytes(6 * length))
    with opened(path) as file:
        assert [row.pid for row in file.found()] == [5]
        assert file.keep(process_of(6))
    assert sorted(row.pid for row in found_in(path)) == [5, 6]


def test_no_room_for_the_file_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(NoRows, match=r"cannot keep the books in .*No space left"):
        RowsFile(tmp_path / "rows", boot=BOOT)
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "rows").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoRows):
        RowsFile(tmp_path / "rows", boot=BOOT)
    assert not (tmp_path / "elsewhere").exists()


def test_it_is_mapped_and_not_read_into_memory(tmp_path: Path) -> None:
    """What is written is in the file at once, even if the process is killed then."""
    with opened(tmp_path / "rows") as file:
        file.keep(process_of(3))
        with (tmp_path / "rows").open("rb") as raw, mmap.mmap(raw.fileno(), 0, prot=mmap.PROT_READ) as seen:
            assert process_of(3).token in seen[:]


# ---- Limits on rows --------------------------------------------------------------------------------------------------


VICTIM = ContainerKey("f" * 32)
Begin = Callable[..., Process]
Hostile = Callable[..., ContainerKey]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[RowsFile]:
    file = RowsFile(tmp_path / "rows", boot="boot-1")
    yield file
    file.close()


@pytest.fixture
def ledger(file: RowsFile) -> Ledger:
    ledger = Ledger(file)
    put(ledger, file, VICTIM, "victims")
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


@pytest.fixture
def hostile(ledger: Ledger, file: RowsFile) -> Hostile:
    def hostile(number: int, namespace: str = "hostile") -> ContainerKey:
        key = ContainerKey(f"{number:032x}")
        put(ledger, file, key, namespace)
        return key

    return hostile


def put(ledger: Ledger, file: RowsFile, key: ContainerKey, namespace: str) -> None:
    ledger.put(key, (book(1 << 40),))
    for owner in (key, own_budget(key)):
        file.bounds.belongs(owner, namespace)


def exported(ledger: Ledger, process: Process) -> int:
    """The number of names that it gets."""
    names = range(1, MOST_NAMES // 4)
    return sum(ledger.sharing.exported(process, 0, Shared(name, name, MIB)) for name in names)


def lives(ledger: Ledger, process: Process) -> None:
    """Check that the process has memory, and shares it."""
    assert isinstance(ledger.accounting.lend(process, 0, Amounts(MIB, MIB)), Lent)
    assert ledger.sharing.exported(process, 0, Shared(1, 1, MIB))


def test_what_anybody_may_have_takes_one_row_however_many_processes_live(
    ledger: Ledger, file: RowsFile, begin: Begin, hostile: Hostile
) -> None:
    crowd = [begin(hostile(1)) for _ in range(MOST_PROCESSES)]
    before = file.free
    for number in range(1, 151):
        assert ledger.sharing.exported(crowd[0], 0, Shared(number, number, MIB), anybodys=True)
        ledger.sharing.left(crowd[0], 0, Shared(number=number, size=MIB // 2, freed=MIB // 2))
    assert file.free == before - 151, "a row for each, and one for what the maker has"
    lives(ledger, begin(VICTIM))


def test_one_container_gets_a_part_of_the_rows(ledger: Ledger, file: RowsFile, begin: Begin, hostile: Hostile) -> None:
    attacker = begin(hostile(1))
    assert exported(ledger, attacker) <= (ROWS - RESERVE) // OWNER_PART
    assert file.bounds.refused
    lives(ledger, begin(VICTIM))


def test_a_namespace_gets_a_part_of_the_rows_however_many_containers_it_has(
    ledger: Ledger, file: RowsFile, begin: Begin, hostile: Hostile
) -> None:
    taken = sum(exported(ledger, begin(hostile(number))) for number in range(1, 17))
    assert taken <= (ROWS - RESERVE) // NAMESPACE_PART
    lives(ledger, begin(VICTIM))


@pytest.mark.slow
def test_many_namespaces_leave_room_for_whoever_comes(ledger: Ledger, begin: Begin, hostile: Hostile) -> None:
    for number in range(1, 41):
        key = hostile(number, namespace=f"hostile-{number}")
        exported(ledger, begin(key))
        for pid in range(MOST_PROCESSES // 4):
            ledger.lives.begin(key, (number << 20, pid), (number << 20 | pid).to_bytes(16, "big"))
    lives(ledger, begin(VICTIM))


@pytest.mark.slow
def test_a_sibling_s_names_leave_the_reserve_to_processes_of_their_own_namespace(
    ledger: Ledger, begin: Begin, hostile: Hostile
) -> None:
    for number in range(1, 41):
        exported(ledger, begin(hostile(number)))
    newcomer = begin(hostile(41))
    assert isinstance(ledger.accounting.lend(newcomer, 0, Amounts(MIB, MIB)), Lent)


def test_what_was_refused_leaves_nothing_behind(ledger: Ledger, file: RowsFile, begin: Begin, hostile: Hostile) -> None:
    attacker = begin(hostile(1))
    exported(ledger, attacker)
    before = file.free
    for number in range(10_000, 10_100):
        assert not ledger.sharing.exported(attacker, 0, Shared(number, number, MIB))
        assert ledger.containers[attacker.key].pieces.made(attacker.id, 0, number) is None
    assert file.free == before
    ledger.lives.died(attacker, 1)
    assert file.free == ROWS


def test_a_next_broker_has_the_same_bounds(
    ledger: Ledger, file: RowsFile, begin: Begin, hostile: Hostile, tmp_path: Path
) -> None:
    attacker = begin(hostile(1))
    exported(ledger, attacker)
    again = RowsFile(tmp_path / "rows", boot="boot-1")
    again.bounds.belongs(attacker.key, "hostile")
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
