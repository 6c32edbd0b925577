"""Memory that stays goes into large pages where Linux offers them, and is the same memory afterwards."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.daemon import large_pages
from partage_base.daemon.large_pages import Range, movable, pack

PAGE = 2 << 20
MAPS = """\
55d0c0000000-55d0c0a00000 r-xp 00001000 fe:00 1184 /usr/bin/python3.11
55d0c1000000-55d0c1900000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
7f0000500000-7f0000f00000 rw-p 00000000 00:00 0 \n\
7f0001000000-7f0001200000 ---p 00000000 00:00 0
7f0001200000-7f0001400000 rw-s 00000000 00:01 1025 /memfd:ring (deleted)
7f0001400000-7f0001800000 rw-p 00000000 fe:00 77 /usr/lib/a library.so
7f0001900000-7f0001a00000 rw-p 00000000 00:00 0
7f0002000000-7f0002200000 rw-p 00000000 00:00 0 [anon: glibc: malloc]
7ffd00000000-7ffd00400000 rw-p 00000000 00:00 0 [stack]
"""


def test_only_our_own_memory_is_moved_in_whole_pages() -> None:
    assert list(movable(MAPS.splitlines(), PAGE)) == [
        Range(0x55D0C1000000, 0x55D0C1800000),
        Range(0x7F0000000000, 0x7F0000400000),
        Range(0x7F0000600000, 0x7F0000E00000),
        Range(0x7F0002000000, 0x7F0002200000),
    ]


@given(st.integers(0, 1 << 46), st.integers(1, 1 << 30), st.sampled_from([1 << 16, PAGE, 1 << 25]))
def test_what_is_moved_lies_within_what_is_mapped(start: int, size: int, page: int) -> None:
    for found in movable([f"{start:x}-{start + size:x} rw-p 00000000 00:00 0"], page):
        assert start <= found.start < found.end <= start + size
        assert found.start % page == found.end % page == 0


def test_this_process_moves_its_memory_and_finds_it_again() -> None:
    with mmap.mmap(-1, 16 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        for place in range(0, len(memory), 4096):
            memory[place] = place >> 12 & 0xFF
        packed = pack()
        assert all(memory[place] == place >> 12 & 0xFF for place in range(0, len(memory), 4096))
    if offered():
        assert packed >= 15 * PAGE


@pytest.mark.parametrize("decided", ["always madvise [never]", None])
def test_where_an_operator_decided_against_it_nothing_is_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decided: str | None
) -> None:
    if decided is not None:
        (tmp_path / "enabled").write_text(decided)
        (tmp_path / "hpage_pmd_size").write_text(str(PAGE))
    monkeypatch.setattr(large_pages, "_SYSTEM", tmp_path)
    assert pack() == 0


def offered() -> bool:
    """By this kernel and whoever set it up."""
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    major, minor = Path("/proc/sys/kernel/osrelease").read_text().split(".")[:2]
    return enabled.exists() and "[never]" not in enabled.read_text() and (int(major), int(minor)) >= (6, 1)
