"""The rooms of our C libraries: calls and includes go to the same room or to a lower floor, so there is no cycle.

What a room reads from above is a table of the roof (`cuda/parts.def`, `hooks.def`): constant, and never called by name.
Through it a lower room calls what it must not know.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from support.builds import ROOT, objects_of

pytestmark = pytest.mark.slow

PRELOAD: Final = ROOT / "isolation/preload"
SIMULATED: Final = ROOT / "simgpu/native"
ROOF: Final = "roof"
FLOORS: Final = {
    ROOF: 8,
    "hooks": 7,
    "migration": 6,
    "compute": 5,
    "memory": 4,
    "presence": 3,
    "session": 2,
    "frame": 1,
    "core": 0,
}
"""The floors of the preload library. What both libraries consist of (`cuda`, `nvml`, `names`) is its roof."""
SIMULATED_FLOORS: Final = {"cuda": 1, "nvml": 1, "daemon": 1, "common": 0}
TABLES: Final = (".rodata", ".data.rel.ro")
_SYMBOL: Final = re.compile(r"^[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+ (?:\.hidden )?(\S+)$", flags=re.MULTILINE)
_INCLUDE: Final = re.compile(r'^#include "([^"]+)"', flags=re.MULTILINE)


@dataclass(frozen=True)
class Unit:
    name: str
    room: str
    uses: frozenset[str]
    defines: dict[str, str]
    """The section of each name."""


def room_of(folders: Iterable[str]) -> str:
    """An object or a source is in a folder of its room, the frame of one library in a folder of that library's."""
    innermost = list(folders)[-1]
    return innermost if innermost in FLOORS else ROOF


def unit(path: Path, objects: Path) -> Unit:
    table = subprocess.check_output(["objdump", "-t", str(path)], text=True)
    symbols = [(kind, section, name) for kind, section, name in _SYMBOL.findall(table) if kind[0] in "gu w!"]
    uses = frozenset(name for _, section, name in symbols if section == "*UND*")
    defines = {name: section for kind, section, name in symbols if section != "*UND*" and kind[0] in "gu!w"}
    inside = path.relative_to(objects)
    return Unit(str(inside), room_of(inside.parts[:-1]), uses, defines)


def upward(units: Iterable[Unit]) -> Iterator[str]:
    """Each use of a name from a higher floor, with both ends."""
    units = list(units)
    homes = {name: (each, section) for each in units for name, section in each.defines.items()}
    for each in units:
        for name in sorted(each.uses & homes.keys()):
            home, section = homes[name]
            is_table = home.room == ROOF and section.startswith(TABLES)
            if FLOORS[home.room] > FLOORS[each.room] and not is_table:
                yield f"{each.name} ({each.room}) uses {name} of {home.name} ({home.room})"


def included_upward(top: Path, floors: dict[str, int], room: str, file: Path) -> Iterator[str]:
    for written in _INCLUDE.findall(file.read_text()):
        included = (file.parent / written).resolve()
        if not included.is_file() or top not in included.parents:
            continue
        other = included.relative_to(top).parts[-2]
        other = other if other in floors else ROOF
        if other != room and floors.get(other, 0) >= floors[room]:
            yield f"{file.relative_to(top)} ({room}) includes {included.relative_to(top)} ({other})"


@pytest.fixture(scope="module")
def units() -> dict[str, list[Unit]]:
    """The objects of each library."""
    objects = objects_of(PRELOAD, "CFLAGS=-O0", "objects")
    files = [unit(path, objects) for path in sorted(objects.rglob("*.o"))]
    others = {
        "cuda": ("nvml/",),
        "nvml": ("cuda/", "hooks/", "migration/", "compute/", "memory/", "presence/", "session/"),
    }
    return {library: [each for each in files if not each.name.startswith(others[library])] for library in others}


@pytest.mark.parametrize("library", ["cuda", "nvml"])
def test_no_object_uses_what_a_higher_room_has(units: dict[str, list[Unit]], library: str) -> None:
    assert {each.room for each in units[library]} >= {ROOF, "hooks", "frame"}
    assert list(upward(units[library])) == []


@pytest.mark.parametrize(
    ("room", "name", "home"),
    [
        ("session", "account_begin", "memory"),
        ("memory", "gate_enter", "compute"),
        ("compute", "hook_cuMemAlloc_v2", "hooks"),
        ("frame", "cuMemAlloc_v2", ROOF),
        ("session", "gates", "compute"),
    ],
)
def test_a_use_of_a_higher_room_is_found(units: dict[str, list[Unit]], room: str, name: str, home: str) -> None:
    """Also of its data, and of a function of the roof."""
    wrong = Unit("wrong.o", room, frozenset([name]), {})
    assert [line.split(" of ")[0] for line in upward([*units["cuda"], wrong])] == [f"wrong.o ({room}) uses {name}"]
    assert next(upward([*units["cuda"], wrong])).endswith(f"({home})")


def sources(top: Path, floors: dict[str, int]) -> Iterator[tuple[str, Path]]:
    for path in sorted(top.rglob("*.[ch]")):
        parts = path.relative_to(top).parts
        if parts[0] not in ("tests", "link"):
            yield next((part for part in reversed(parts) if part in floors), ROOF), path


def test_no_file_of_the_library_includes_one_of_a_higher_room() -> None:
    found = [line for room, file in sources(PRELOAD, FLOORS) for line in included_upward(PRELOAD, FLOORS, room, file)]
    assert found == []


def test_the_parts_of_the_simulated_driver_share_nothing_but_common() -> None:
    floors = SIMULATED_FLOORS
    files = [(room, file) for room, file in sources(SIMULATED, floors) if room in floors]
    assert {room for room, _ in files} == floors.keys()
    assert [line for room, file in files for line in included_upward(SIMULATED, floors, room, file)] == []
