"""Rows survive a broker that is killed between any two stores, and a file that is not whole is told and set aside."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.errors import NoRows
from partage_isolation.ledger.account import Account
from partage_isolation.ledger.budget import Process, State
from partage_isolation.store.rows import PLACE_BYTES, Damaged, Row, grouped, pack_empty, pack_row, read_row
from partage_isolation.store.rows_file import RowsFile
from partage_plugins.vocabulary.names import ContainerKey

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
    process = process_of(10, Account(1, 2, 3, 4, used=5, is_made=True), Account(lent=9))
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
    """The process is killed within the copy: the beginning of the place is new, the rest is what was there."""
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
    """A downgrade: the next version has added fields, so that its places are longer."""
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
    """What is written is in the file at once, whatever then happens to the process."""
    with opened(tmp_path / "rows") as file:
        file.keep(process_of(3))
        with (tmp_path / "rows").open("rb") as raw, mmap.mmap(raw.fileno(), 0, prot=mmap.PROT_READ) as seen:
            assert process_of(3).token in seen[:]
