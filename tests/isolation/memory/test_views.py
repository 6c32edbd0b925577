"""Programs see the container's limit and its charges, the same by every query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from isolation.memory.stage import BLOCK, LIMIT, MIB, Place, Program, metered
from support.simgpu import card

pytestmark = pytest.mark.slow
BOTH = Path(__file__).with_name("both.py")
NVML_UNINITIALIZED = 1
H100 = card("h100", memory_mib=1024, reserved_mib=0, context_mib=64, module_mib=0)


@pytest.fixture
def seeing(place: Place) -> Iterator[Program]:
    """A program with a context that also uses NVML."""
    with Program(place, BOTH) as started:
        started.ask("start()")
        started.ask("begin()")
        yield started


def test_the_limit_is_all_that_there_is(seeing: Program) -> None:
    assert seeing.ask("info()") == [LIMIT, LIMIT]
    assert seeing.ask("told('cuDeviceTotalMem_v2', 0)") == LIMIT
    assert seeing.ask("memory()") == [LIMIT, 0, LIMIT]
    assert seeing.ask("memory_v2()") == [LIMIT, 0, 0, LIMIT]


def test_what_is_held_is_used_and_credit_is_not(seeing: Program) -> None:
    seeing.ask("a = alloc(100 << 20)")
    used = 100 * MIB
    assert seeing.ask("info()") == [LIMIT - used, LIMIT]
    assert seeing.ask("memory()") == [LIMIT, used, LIMIT - used]
    assert seeing.ask("memory_v2()") == [LIMIT, 0, used, LIMIT - used]


def test_all_that_is_shown_as_free_can_be_had(seeing: Program) -> None:
    seeing.ask("a = alloc(100 << 20)")
    seeing.ask("b = alloc(info()[0])")
    assert seeing.ask("info()") == [0, LIMIT]


def test_what_another_program_holds_is_used_too(seeing: Program, place: Place) -> None:
    place.broker.gives_credit = False
    with place.program() as other:
        other.ask("a = alloc(100 << 20)")
        assert seeing.ask("info()")[0] == LIMIT - 100 * MIB
        assert sorted(seeing.ask("pids('compute')")) == sorted([[seeing.pid, 0], [other.pid, 100 * MIB]])


def test_no_more_is_free_than_the_card_has(seeing: Program) -> None:
    """Memory of other processes that no broker knows fills the card."""
    seeing.place.broker.limits[0] = 4096 * MIB
    free, total = seeing.ask("info()")
    assert total == 1024 * MIB
    assert free <= 1024 * MIB - 64 * MIB


def test_a_limit_that_changes_is_seen_at_once(seeing: Program) -> None:
    seeing.place.broker.limits[0] = 100 * MIB
    assert seeing.ask("info()") == [100 * MIB, 100 * MIB]
    assert seeing.ask("memory()")[0] == 100 * MIB


def test_what_is_used_beyond_a_lowered_limit_never_shows_as_less_than_nothing(seeing: Program) -> None:
    seeing.ask("a = alloc(100 << 20)")
    seeing.place.broker.limits[0] = 50 * MIB
    assert seeing.ask("info()") == [0, 50 * MIB]
    assert seeing.ask("memory()") == [50 * MIB, 50 * MIB, 0]


@pytest.mark.parametrize("which", ["compute", "compute v2"])
def test_only_the_containers_processes_are_listed(seeing: Program, which: str) -> None:
    place = seeing.place
    seeing.ask("a = alloc(2 << 20)")
    with place.program(), place.program(), place.program():
        assert len(seeing.ask(f"pids('{which}')")) == len(place.broker.rows) == 4
        place.broker.rows = {token: row for token, row in place.broker.rows.items() if row.pid == seeing.pid}
        assert [pid for pid, _ in seeing.ask(f"pids('{which}')")] == [seeing.pid]


@pytest.mark.parametrize("which", ["graphics", "mps"])
def test_nothing_is_listed_as_what_it_is_not(seeing: Program, which: str) -> None:
    assert seeing.ask(f"pids('{which}')") == []


def test_the_list_of_all_kinds_is_the_containers_too(tmp_path: Path) -> None:
    with metered(tmp_path, cards=(H100,)) as place, place.program(), Program(place, BOTH) as seeing:
        seeing.ask("start()")
        seeing.ask("begin()")
        assert len(seeing.ask("details(0)")) == 2
        assert seeing.ask("details(1)") == []
        place.broker.rows = {token: row for token, row in place.broker.rows.items() if row.pid == seeing.pid}
        assert seeing.ask("details(0)") == [seeing.pid]


def test_a_card_that_was_not_granted_shows_nothing(seeing: Program) -> None:
    assert seeing.ask("memory(1)") == [0, 0, 0]
    assert seeing.ask("pids('compute', 1)") == []


def test_lists_of_what_processes_did_are_of_the_containers_own(seeing: Program) -> None:
    place = seeing.place
    with place.program() as other:
        other.ask("s = stream()")
        other.ask("launch('sim_400ms', s)")
        other.ask("synchronize(s)")
        assert seeing.ask("busy()") == [other.pid]
        place.broker.rows = {token: row for token, row in place.broker.rows.items() if row.pid == seeing.pid}
        assert seeing.ask("busy()") == []


def test_nvml_alone_needs_the_broker_too(place: Place) -> None:
    place.broker.stop()
    with Program(place, BOTH) as alone:
        assert alone.ask("failure('begin()')") == NVML_UNINITIALIZED
        place.broker.start()
        alone.ask("begin()")
        assert alone.ask("memory()") == [LIMIT, 0, LIMIT]


def test_the_driver_says_what_is_wrong_with_a_call(seeing: Program) -> None:
    assert seeing.error("call('cuMemGetInfo_v2', None, None)") == 0
    assert seeing.error("call('cuDeviceTotalMem_v2', bytes(8), 99)") == 101
    assert seeing.ask("failure('nvml.nvmlDeviceGetMemoryInfo(None)')") != 0
    seeing.ask("alloc(1)")
    assert seeing.used == BLOCK
