"""Spare exports get the names that a driver has and the object does not, and the dynamic linker finds them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.library import elf
from partage_isolation.library.errors import FileRefused
from partage_isolation.library.gnu_hash import gnu_hash
from partage_isolation.library.spares import name_spares
from support.shared_objects import found_by_hash, shared_object, spare_name

SPARES = 4
OURS = ("cuInit", "cuMemAlloc_v2")
OBJECT = shared_object([*OURS, *(spare_name(number) for number in range(SPARES))])
NAMES = st.sets(st.from_regex(r"cu[A-Z][A-Za-z0-9_]{0,70}", fullmatch=True), max_size=8)


def functions(content: bytes) -> frozenset[str]:
    return elf.read(lambda offset, size: content[offset : offset + size], "a file").functions()


@given(NAMES)
def test_new_names_are_exported_and_found_and_nothing_else_changes(names: set[str]) -> None:
    names = {*names, "cuAlways"}
    named = name_spares(OBJECT, names, "a file")
    fitting = sorted(name for name in names - set(OURS) if len(name) <= 63)[:SPARES]
    left = {spare_name(number) for number in range(len(fitting), SPARES)}
    assert named.added == tuple(fitting)
    assert functions(named.content) == {*OURS, *fitting, *left}
    assert all(found_by_hash(named.content, name) for name in {*OURS, *fitting, *left})
    assert not any(found_by_hash(named.content, spare_name(number)) for number in range(len(fitting)))
    assert len(named.content) == len(OBJECT)


@given(NAMES)
def test_what_does_not_fit_is_told(names: set[str]) -> None:
    named = name_spares(OBJECT, names, "a file")
    assert {*named.added, *named.left_out} == names - set(OURS)
    assert not {*named.added} & {*named.left_out}


def test_an_object_that_has_all_names_stays_as_it_is() -> None:
    assert name_spares(OBJECT, OURS, "a file").content == OBJECT


def test_names_given_once_are_not_given_again() -> None:
    once = name_spares(OBJECT, ["cuNew"], "a file").content
    assert name_spares(once, ["cuNew"], "a file").content == once
    assert name_spares(once, ["cuNewer"], "a file").added == ("cuNewer",)


def test_an_object_without_gnus_table_is_refused() -> None:
    with pytest.raises(FileRefused, match="no entry 0x6ffffef5"):
        name_spares(shared_object([spare_name(0)], gnu=False), ["cuNew"], "a file")


@given(st.integers(0, len(OBJECT) - 1), st.integers(0, 255))
def test_a_damaged_object_is_named_or_refused(place: int, byte: int) -> None:
    content = bytearray(OBJECT)
    content[place] = byte
    with suppress(FileRefused):
        name_spares(bytes(content), ["cuNew"], "a file")


@pytest.mark.parametrize(("name", "value"), [(b"", 0x1505), (b"exit", 0x7C967E3F), (b"printf", 0x156B2BB8)])
def test_the_hash_is_gnus(name: bytes, value: int) -> None:
    assert gnu_hash(name) == value
