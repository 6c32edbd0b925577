"""The objects that every process on a node would load run nothing by themselves, and need only an old glibc.

They may come from any compiler: PARTAGE_PRELOAD names another build, such as one of `make release`.
"""

from __future__ import annotations

import re
import subprocess
from typing import Final

import pytest

from partage_isolation.library.objects import ALIAS, CUDA, NVML, OBJECTS, built, sources
from support.shared_objects import spare_name

pytestmark = pytest.mark.slow

LISTS: Final = {CUDA: "cuda.def", NVML: "nvml.def"}
OTHERS: Final = {CUDA: {"dlopen"}, NVML: set[str]()}
NEWEST: Final = (2, 17)
MARKS: Final = {"partage_library", "partage_core", "partage_alias"}


def said(option: str, name: str) -> str:
    return subprocess.check_output(["readelf", "-W", option, str(built() / name)], text=True)


def listed(path: str) -> list[str]:
    """The functions of a list: the last name on each line."""
    return re.findall(r"^[A-Z_]+\((?:.*, )?(\w+)\)$", (sources() / path).read_text(), flags=re.MULTILINE)


def symbols(name: str) -> list[list[str]]:
    """Number, value, size, type, binding, visibility, section, name."""
    lines = (line.split() for line in said("--dyn-syms", name).splitlines())
    return [fields for fields in lines if len(fields) == 8 and fields[0].rstrip(":").isdigit()]


def exported(name: str) -> dict[str, list[str]]:
    return {fields[7]: fields for fields in symbols(name) if fields[6] not in ("UND", "Ndx")}


@pytest.mark.parametrize("name", LISTS)
def test_it_exports_the_drivers_names_and_spares_and_little_else(name: str) -> None:
    functions = {symbol for symbol, fields in exported(name).items() if fields[3] == "FUNC"}
    spares = {spare_name(number) for number in range(256)}
    assert functions == {*listed(f"../driver/{LISTS[name]}"), *spares, *OTHERS[name]}
    assert exported(name).keys() - functions <= MARKS


def test_the_alias_has_nothing_but_a_need() -> None:
    assert exported(ALIAS).keys() <= MARKS
    assert re.findall(r"NEEDED.*\[(.*)\]", said("-d", ALIAS)) == [CUDA]


@pytest.mark.parametrize("name", LISTS)
def test_every_hook_is_one_of_the_names(name: str) -> None:
    hooks = listed("hooks/hooks.def" if name == CUDA else "nvml/hooks/hooks.def")
    assert len(set(hooks)) == len(hooks)
    assert set(hooks) <= set(listed(f"../driver/{LISTS[name]}"))


@pytest.mark.parametrize("name", OBJECTS)
def test_it_answers_for_the_library_of_its_name(name: str) -> None:
    assert re.findall(r"SONAME.*\[(.*)\]", said("-d", name)) == [name]


@pytest.mark.parametrize("name", LISTS)
def test_it_needs_only_what_every_glibc_has_under_these_names(name: str) -> None:
    assert set(re.findall(r"NEEDED.*\[(.*)\]", said("-d", name))) == {"libc.so.6", "libdl.so.2"}


@pytest.mark.parametrize("name", OBJECTS)
def test_no_symbol_is_newer_than_glibc_2_17(name: str) -> None:
    needed = re.findall(r"Name: (\w+)_([\d.]+) ", said("-V", name))
    assert {library for library, _ in needed} <= {"GLIBC"}
    assert all(tuple(map(int, version.split("."))) <= NEWEST for _, version in needed)
    undefined = [fields for fields in symbols(name) if fields[6] == "UND" and "@" not in fields[7] and fields[7]]
    assert undefined == []


@pytest.mark.parametrize("name", OBJECTS)
def test_nothing_runs_when_it_is_loaded_or_unloaded(name: str) -> None:
    tags = re.findall(r"\((\w+)\)", said("-d", name))
    assert not {"INIT", "FINI", "INIT_ARRAY", "FINI_ARRAY", "PREINIT_ARRAY"} & set(tags)


@pytest.mark.parametrize("name", OBJECTS)
def test_code_is_never_written_and_what_the_linker_writes_is_closed(name: str) -> None:
    dynamic, segments = said("-d", name), said("-l", name)
    assert "TEXTREL" not in dynamic
    assert "NOW" in dynamic
    assert "GNU_RELRO" in segments
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    assert "RWE" not in stack
    assert not re.search(r"LOAD.* RWE ", segments)


@pytest.mark.parametrize("name", OBJECTS)
def test_loading_it_relocates_next_to_nothing(name: str) -> None:
    relocations = re.findall(r"^[0-9a-f]{12,} +[0-9a-f]{12,} +(R_\w+)", said("-r", name), flags=re.MULTILINE)
    assert len(relocations) < 128
    assert not [kind for kind in relocations if "IRELATIV" in kind or "DTPMOD" in kind or "TLSDESC" in kind]


@pytest.mark.parametrize("name", OBJECTS)
def test_it_has_no_versions_of_its_own(name: str) -> None:
    assert "Version definition" not in said("-V", name)


@pytest.mark.parametrize("name", OBJECTS)
def test_names_that_it_lacks_cost_the_dynamic_linker_little(name: str) -> None:
    """There is also only one table, which the installer rewrites."""
    dynamic = said("-d", name)
    assert "GNU_HASH" in dynamic
    assert "(HASH)" not in dynamic


@pytest.mark.parametrize("name", LISTS)
def test_a_few_bytes_of_each_thread_are_its_own(name: str) -> None:
    sizes = re.findall(r"^ +TLS +(?:0x\w+ +){4}0x(\w+)", said("-l", name), flags=re.MULTILINE)
    assert [int(size, 16) <= 64 for size in sizes] == [True]


@pytest.mark.parametrize("name", LISTS)
def test_every_entry_is_a_place_to_which_an_indirect_jump_may_lead(name: str) -> None:
    notes = said("-n", name)
    assert re.search(r"x86 feature: .*IBT|AArch64 feature: .*BTI", notes), notes
