"""Any file is read for its exported functions, or gives one error of ours."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partage_isolation.library import elf
from partage_isolation.library.errors import FileRefused
from support.shared_objects import shared_object

NAMES = st.lists(st.from_regex(r"cu[A-Z][A-Za-z0-9_]{0,40}", fullmatch=True), unique=True, max_size=12)
ONE = shared_object(["cuInit", "cuMemAlloc_v2"], gnu=False)
ONE_OF_GNU = shared_object(["cuInit", "cuMemAlloc_v2"])


def read(content: bytes) -> elf.SharedObject:
    return elf.read(lambda offset, size: content[offset : offset + size], "a file")


@given(NAMES, st.booleans())
def test_what_an_object_defines_is_found_and_what_it_imports_is_not(names: list[str], gnu: bool) -> None:  # noqa: FBT001
    assert read(shared_object(names, gnu=gnu)).functions() == set(names)


@given(st.sampled_from((ONE, ONE_OF_GNU)), st.data())
def test_a_file_that_ends_early_is_refused(content: bytes, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(content) - 17))  # the last entry only marks the end
    with pytest.raises(FileRefused, match=r"^a file: "):
        read(content[:end])


@given(st.sampled_from((ONE, ONE_OF_GNU)), st.data())
def test_a_file_with_other_bytes_in_it_is_read_or_refused(content: bytes, data: st.DataObject) -> None:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(content) - 8))
        number = data.draw(st.sampled_from((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(content))))
        struct.pack_into("<Q", changed, place, number)
    with suppress(FileRefused):
        read(bytes(changed)).functions()


@given(st.binary(max_size=400))
@example(b"")
@example(b"\x7fELF")
def test_bytes_that_are_no_object_are_refused(content: bytes) -> None:
    with pytest.raises(FileRefused):
        read(content)


def test_an_object_for_32_bits_is_refused() -> None:
    content = bytearray(ONE)
    content[4] = 1
    with pytest.raises(FileRefused, match="64 bits"):
        read(bytes(content))
