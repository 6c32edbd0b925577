"""A tree in which a program would look for a file on the node is refused."""

from __future__ import annotations

import pytest

from partage_bundle.elf import MAGIC, Facts, complaints, loaded, machine_of
from partage_bundle.recipe import MACHINES, Machine

HERE = MACHINES["x86_64"]
LIBC = Facts(HERE.elf, (HERE.loader,), ())
LOADER = Facts(HERE.elf, (), ())
GROUND = {"lib/libc.so.6": LIBC, f"lib/{HERE.loader}": LOADER}


def said(objects: dict[str, Facts], machine: Machine = HERE) -> list[str]:
    return complaints({**GROUND, **objects}, machine)


def test_what_lies_in_the_one_folder_is_found_by_all() -> None:
    python = Facts(HERE.elf, ("libc.so.6",), ())
    assert said({"bin/python3": python, "lib/deep/down/module.so": Facts(HERE.elf, ("libc.so.6",), ())}) == []


def test_a_library_that_is_nowhere_is_named_with_who_needs_it() -> None:
    assert said({"lib/_lzma.so": Facts(HERE.elf, ("liblzma.so.5",), ())}) == [
        "lib/_lzma.so needs liblzma.so.5, which is not in the tree"
    ]


@pytest.mark.parametrize("origin", ["$ORIGIN", "${ORIGIN}"])
def test_a_wheel_finds_the_libraries_that_it_brings(origin: str) -> None:
    module = Facts(HERE.elf, ("libblas.so",), (f"{origin}/../numpy.libs",))
    blas = Facts(HERE.elf, ("libc.so.6",), ())
    assert said({"lib/p/numpy/core.so": module, "lib/p/numpy.libs/libblas.so": blas}) == []
    assert said({"lib/p/numpy/core.so": module, "lib/p/other.libs/libblas.so": blas}) == [
        "lib/p/numpy/core.so needs libblas.so, which is not in the tree"
    ]


def test_a_folder_outside_of_the_tree_is_not_looked_through() -> None:
    module = Facts(HERE.elf, ("libc.so.6", "libcuda.so.1"), ("/usr/lib",))
    assert said({"lib/module.so": module}) == ["lib/module.so needs libcuda.so.1, which is not in the tree"]


def test_an_object_of_the_building_machine_is_no_part_of_another_one_s_tree() -> None:
    arm = MACHINES["aarch64"]
    assert complaints({"lib/module.so": LOADER}, arm) == ["lib/module.so is for another machine than aarch64"]


@pytest.mark.parametrize("head", [b"", MAGIC[:4], b"#!/bin/sh", b"\x7fELF\x01\x01" + bytes(58)])
def test_what_is_no_object_of_64_bits_is_none(head: bytes) -> None:
    assert machine_of(head) is None


def test_the_machine_is_read_from_the_header() -> None:
    assert machine_of(MAGIC + bytes(12) + (183).to_bytes(2, "little")) == MACHINES["aarch64"].elf


def test_an_object_keeps_what_is_loaded_and_loses_what_lies_behind() -> None:
    header = bytearray(MAGIC + bytes(58))
    header[32:40] = (64).to_bytes(8, "little")
    header[40:48] = (300).to_bytes(8, "little")
    header[54:58] = (56).to_bytes(2, "little") + (1).to_bytes(2, "little")
    header[60:64] = b"\x09\x00\x08\x00"
    row = bytearray(56)
    row[8:16], row[32:40] = (0).to_bytes(8, "little"), (200).to_bytes(8, "little")
    content = bytes(header) + bytes(row) + b"c" * 80 + b"symbols and lines" * 10
    kept = loaded(content)
    assert len(kept) == 200
    assert kept[64:] == content[64:200]
    assert (kept[40:48], kept[60:64]) == (bytes(8), bytes(4))
