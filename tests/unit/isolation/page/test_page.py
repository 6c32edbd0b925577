"""A line is written as a whole, its changes are counted, waiters on it wake, and no one else can write it."""

from __future__ import annotations

import mmap
import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolation.timeslices.members import address_of, wait_on
from partage_isolation.library.errors import NotInstalled
from partage_isolation.library.pages import PAGE, built_page, install_page, line_writer, page_sources
from partage_isolation.store.page import Page
from rig.patience import patience_s

WRITE = line_writer(built_page().parent)


def word_of(seen: mmap.mmap, line: int) -> int:
    return int.from_bytes(seen[line * 64 : line * 64 + 8], "little")


def changes_of(seen: mmap.mmap, line: int) -> int:
    return int.from_bytes(seen[line * 64 + 8 : line * 64 + 12], "little")


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 2**64 - 1), st.booleans()), max_size=20))
def test_each_line_has_its_last_word_and_how_often_it_was_written(writes: list[tuple[int, int, bool]]) -> None:
    page = Page(2, WRITE)
    with mmap.mmap(page.descriptor, mmap.PAGESIZE, prot=mmap.PROT_READ) as seen:
        for line, word, wake in writes:
            page.write(line, word, wake=wake)
        for line in range(64):
            mine = [word for written, word, _ in writes if written == line]
            assert (word_of(seen, line), changes_of(seen, line)) == (mine[-1] if mine else 0, len(mine))
            assert not any(seen[line * 64 + 12 : line * 64 + 64])
    page.close()


def test_a_sleeper_wakes_when_the_line_changes() -> None:
    page = Page(1, WRITE)
    with mmap.mmap(page.descriptor, mmap.PAGESIZE, prot=mmap.PROT_READ) as seen:
        address, woken = address_of(seen) + 64 + 8, list[int]()

        def sleep() -> None:
            while not word_of(seen, 1):
                wait_on(address, 0, seconds=30)
            woken.append(word_of(seen, 1))

        sleeper = threading.Thread(target=sleep)
        sleeper.start()
        page.write(0, 7, wake=True)
        page.write(1, 42, wake=True)
        sleeper.join(patience_s())
        assert woken == [42]
    page.close()


def test_nobody_who_is_given_it_can_write_it() -> None:
    page = Page(1, WRITE)
    for prot in (mmap.PROT_WRITE, mmap.PROT_READ | mmap.PROT_WRITE):
        with pytest.raises(PermissionError):
            mmap.mmap(page.descriptor, mmap.PAGESIZE, prot=prot)
    with pytest.raises(PermissionError):
        os.pwrite(page.descriptor, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(page.descriptor, 1)
    page.close()


@pytest.mark.parametrize("line", [-1, 64, 1 << 40])
def test_nothing_is_written_beside_the_page(line: int) -> None:
    page = Page(1, WRITE)
    with pytest.raises(IndexError):
        page.write(line, 1, wake=False)
    page.close()
    with pytest.raises(IndexError):
        page.write(0, 1, wake=False)


def test_who_was_given_it_keeps_what_was_written_last() -> None:
    page = Page(1, WRITE)
    with mmap.mmap(page.descriptor, mmap.PAGESIZE, prot=mmap.PROT_READ) as seen:
        page.write(0, 9, wake=False)
        page.close()
        assert word_of(seen, 0) == 9


def test_without_the_object_there_is_one_sentence_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="install it with `partage-broker --install-library`"):
        line_writer(tmp_path)


def test_another_object_of_that_name_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int other;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / PAGE, source], check=True)
    with pytest.raises(NotInstalled, match="cannot write leases"):
        line_writer(tmp_path)


def test_it_is_installed_whole_and_replaced_under_who_uses_it(tmp_path: Path) -> None:
    (tmp_path / PAGE).write_bytes(b"of an older version")
    with (tmp_path / PAGE).open("rb") as old:
        installed = install_page(tmp_path)
        assert old.read() == b"of an older version"
    assert installed.read_bytes() == built_page().read_bytes()
    inode = installed.stat().st_ino
    install_page(tmp_path)
    assert installed.stat().st_ino == inode
    assert [path.name for path in tmp_path.iterdir()] == [PAGE]


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="cannot be written to"):
        install_page(tmp_path / "none")


def test_its_sources_build_without_a_warning_and_need_only_an_old_libc(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", page_sources(), f"OUT={tmp_path}"], check=True)
    names = subprocess.run(["nm", "-D", tmp_path / PAGE], capture_output=True, text=True, check=True).stdout
    versions = {line.rpartition("@GLIBC_")[2] for line in names.splitlines() if "@GLIBC_" in line}
    assert versions <= {"2.2.5", "2.17"}
    assert [line.split()[-1] for line in names.splitlines() if " T " in line] == ["partage_line_write"]
