"""An object gets exactly the exports of a driver, as the dynamic linker sees them: names are added and hidden."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.library import elf
from partage_isolation.library.errors import FileRefused
from partage_isolation.library.exports import fit_exports
from partage_isolation.library.gnu_hash import gnu_hash
from support.shared_objects import found_by_hash, shared_object, spare_name

SPARES = 4
OURS = ("cuInit", "cuMemAlloc_v2")
OBJECT = shared_object([*OURS, *(spare_name(number) for number in range(SPARES))])
NAMES = st.sets(st.from_regex(r"cu[A-Z][A-Za-z0-9_]{0,70}", fullmatch=True), max_size=8)


def functions(content: bytes) -> frozenset[str]:
    return elf.read(lambda offset, size: content[offset : offset + size], "a file").functions()


@given(NAMES, st.sets(st.sampled_from(OURS)))
def test_exactly_the_drivers_names_are_exported_and_found(new: set[str], known: set[str]) -> None:
    new |= {"cuAlways"}
    fitted = fit_exports(OBJECT, {*new, *known}, "a file")
    fitting = sorted(name for name in new - set(OURS) if len(name) <= 63)[:SPARES]
    known |= new & set(OURS)
    left = {spare_name(number) for number in range(len(fitting), SPARES)}
    assert (fitted.added, fitted.hidden) == (tuple(fitting), tuple(sorted(set(OURS) - known)))
    assert functions(fitted.content) == {*known, *fitting, *left}
    assert all(found_by_hash(fitted.content, name) for name in {*known, *fitting, *left})
    gone = {*fitted.hidden, *(spare_name(number) for number in range(len(fitting)))}
    assert not any(found_by_hash(fitted.content, name) for name in gone)
    assert len(fitted.content) == len(OBJECT)


@given(NAMES)
def test_what_does_not_fit_is_told(names: set[str]) -> None:
    fitted = fit_exports(OBJECT, names, "a file")
    assert {*fitted.added, *fitted.left_out} == names - set(OURS)
    assert not {*fitted.added} & {*fitted.left_out}


def test_what_no_driver_could_export_is_left_alone() -> None:
    """For example dlopen, which sends paths of the driver to us."""
    content = shared_object(["cuInit", "dlopen", spare_name(0)])
    fitted = fit_exports(content, {"cuAlways"}, "a file")
    assert fitted.hidden == ("cuInit",)
    assert found_by_hash(fitted.content, "dlopen")


def test_an_object_that_has_all_names_and_no_others_stays_as_it_is() -> None:
    assert fit_exports(OBJECT, OURS, "a file").content == OBJECT


@pytest.mark.parametrize("name", ["cudbgReportDriverApiError", "memcpy", "_fini"])
def test_what_is_for_debuggers_or_of_no_interface_stays_the_drivers(name: str) -> None:
    fitted = fit_exports(OBJECT, [*OURS, name], "a file")
    assert (fitted.content, fitted.added, fitted.left_out) == (OBJECT, (), ())


def test_a_function_of_the_object_that_is_no_name_of_the_interface_stays() -> None:
    content = shared_object([*OURS, "dlopen"])
    assert functions(fit_exports(content, ["cuInit"], "a file").content) == {"cuInit", "dlopen"}


def test_an_object_that_was_fitted_is_fitted_again_to_the_same_driver_alone() -> None:
    names = ["cuInit", "cuNew"]
    once = fit_exports(OBJECT, names, "a file").content
    assert fit_exports(once, names, "a file").content == once
    assert fit_exports(once, ["cuInit", "cuNewer"], "a file").added == ("cuNewer",)
    with pytest.raises(FileRefused, match="made for another driver, without cuMemAlloc_v2"):
        fit_exports(once, OURS, "a file")


def test_an_object_without_gnus_table_is_refused() -> None:
    with pytest.raises(FileRefused, match="no entry 0x6ffffef5"):
        fit_exports(shared_object([spare_name(0)], gnu=False), ["cuNew"], "a file")


@given(st.integers(0, len(OBJECT) - 1), st.integers(0, 255))
def test_a_damaged_object_is_named_or_refused(place: int, byte: int) -> None:
    content = bytearray(OBJECT)
    content[place] = byte
    with suppress(FileRefused):
        fit_exports(bytes(content), ["cuInit", "cuNew"], "a file")


@pytest.mark.parametrize(("name", "value"), [(b"", 0x1505), (b"exit", 0x7C967E3F), (b"printf", 0x156B2BB8)])
def test_the_hash_is_gnus(name: bytes, value: int) -> None:
    assert gnu_hash(name) == value
