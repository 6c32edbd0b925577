"""The driver's ways to a function without its name: as without our library, but never a hooked one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest

from isolation.real_drivers.place import Place, Route, hooks, names, routes, symbols
from partage_isolation.library.objects import CUDA

pytestmark = pytest.mark.slow

NEWER_THAN_ALL: Final = 99999
LEAST_ASKED: Final = 90_000
LEAST_IN_TABLES: Final = 50


class Difference(NamedTuple):
    name: str
    version: int
    flags: int
    form: str
    our_result: int
    our_address: int | None
    our_status: int
    result: int
    address: int | None
    status: int


@pytest.fixture(scope="module")
def told(place: Place) -> Mapping[str, Any]:
    ways = routes()
    asked = {
        "names": ["", "cuNone", *sorted(names(CUDA) | place.exports[CUDA] | {way.name for way in ways})],
        "versions": [0, *sorted({way.version for way in ways}), NEWER_THAN_ALL],
        "functions": symbols(place.folder / CUDA),
        "ours": str((place.installed.folder / CUDA).resolve()),
        "theirs": str((place.folder / CUDA).resolve()),
    }
    found: Mapping[str, Any] = place.told("ask.py", asked=asked)
    assert found["asked"] >= LEAST_ASKED
    return found


def test_no_hooked_function_comes_back_unreplaced(place: Place, told: Mapping[str, Any]) -> None:
    theirs = symbols(place.folder / CUDA)
    hooked = {address: name for name, address in theirs.items() if name in hooks()}
    assert [hooked[address] for address in told["same"] if address in hooked] == []
    ours = symbols(place.installed.folder / CUDA)
    direct = {ours[name] for name in hooks()}
    by_symbol = {Difference(*row).our_address for row in told["differences"]}
    assert by_symbol <= direct
    assert {ours[name] for name in hooks() & theirs.keys()} - by_symbol == set()


def test_what_is_ours_is_the_same_form_of_the_same_function(place: Place, told: Mapping[str, Any]) -> None:
    ours = {address: name for name, address in symbols(place.installed.folder / CUDA).items()}
    theirs = symbols(place.folder / CUDA)
    wrong: list[Difference] = []
    for row in told["differences"]:
        each = Difference(*row)
        assert each.our_address is not None, each
        name = ours[each.our_address]
        is_form = theirs.get(name) == each.address or name == symbol(each, routes())
        if not is_form or (each.our_result, each.our_status) != (each.result, each.status):
            wrong.append(each)
    assert wrong == []


def test_the_drivers_own_tables_are_passed_on_and_have_no_hooked_function(place: Place) -> None:
    theirs = {address: name for name, address in symbols(place.folder / CUDA).items()}
    bare, told = (place.told("tables.py", ours=ours) for ours in (False, True))
    assert told == bare
    functions = [at for result, found in told.values() for _, at in found if result == 0]
    assert len(functions) >= LEAST_IN_TABLES
    assert {theirs[at] for at in functions if at in theirs} & hooks() == set()


def symbol(asked: Difference, ways: list[Route]) -> str | None:
    """The symbol that the table says is found."""
    known = [way for way in ways if way.name == asked.name and way.version <= asked.version]
    fitting = [way for way in known if way.per_thread and asked.flags == 2] or [
        way for way in known if not way.per_thread
    ]
    return max(fitting, key=lambda way: way.version).symbol if fitting else None
