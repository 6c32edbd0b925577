"""Library and broker together: the library's report, the broker's ledger and the card agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isolation.memory.paths import LINES
from isolation.memory.stage import BLOCK, CONTEXT, MIB, OUT_OF_MEMORY
from isolation.migration.stage import program
from partage_isolation.library.objects import built
from partage_isolation.store.files import STATE
from support.isolated import Contained, Isolated, isolated, until
from support.simgpu import card

pytestmark = pytest.mark.slow
LIMIT = 512 * MIB


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    with isolated(cards=(card("t4", memory_mib=1024, reserved_mib=0, context_mib=64, module_mib=0),)) as made:
        yield made


@pytest.fixture
def container(place: Isolated) -> Contained:
    made = place.prepare(LIMIT)
    made.install(built())
    return made


def charged(container: Contained) -> int:
    return container.told().cards[0].charged_bytes


def settled(container: Contained, pid: int) -> None:
    """Wait until the ledger equals the card's figure, plus credit."""
    until(
        lambda: container.place.held(pid) <= charged(container) <= container.place.held(pid) + 32 * MIB,
        why=lambda: f"charged {charged(container)}, held {container.place.held(pid)}: {container.told()}",
    )


@pytest.mark.parametrize("path", LINES)
def test_the_books_have_what_the_card_has(container: Contained, path: str) -> None:
    with program(container) as one:
        for line in LINES[path]:
            one.ask(line)
            assert container.place.held(one.pid) <= charged(container) <= LIMIT, line
        settled(container, one.pid)


def test_all_but_the_context_can_be_had_and_nothing_more(container: Contained) -> None:
    with program(container) as one:
        settled(container, one.pid)
        count = 0
        while one.error("alloc(2 << 20)") == 0:
            count += 1
        assert count * BLOCK == LIMIT - CONTEXT
        assert one.error("alloc(1)") == OUT_OF_MEMORY
        assert container.place.held(one.pid) == LIMIT


def test_a_context_beside_managed_memory_is_not_for_nothing(container: Contained) -> None:
    """NVML attributes managed memory to no process: its figure is not a part of that."""
    with program(container) as one:
        one.ask(f"a = managed({LIMIT // 2})")
        settled(container, one.pid)
        count = 0
        while one.error("alloc(2 << 20)") == 0:
            count += 1
        assert count * BLOCK == LIMIT // 2 - CONTEXT
        assert container.place.held(one.pid) == LIMIT
        one.ask("free(a)")
        settled(container, one.pid)


def test_a_broker_that_comes_back_knows_of_managed_memory(container: Contained) -> None:
    broker = container.place.broker
    with program(container) as one:
        one.ask("a = managed(200 << 20)")
        broker.restart()
        settled(container, one.pid)
        assert one.error(f"alloc({LIMIT - CONTEXT - (198 << 20)})") == OUT_OF_MEMORY
        one.ask(f"alloc({LIMIT - CONTEXT - (200 << 20)})")


def test_managed_memory_of_a_program_that_is_gone_is_there_again(container: Contained) -> None:
    with program(container) as one:
        one.ask(f"a = managed({LIMIT - CONTEXT})")
        one.kill()
    with program(container) as other:
        other.ask(f"a = managed({LIMIT - CONTEXT})")


def test_unused_credit_of_one_program_is_there_for_another(container: Contained) -> None:
    with program(container) as one, program(container) as other:
        one.ask("a = alloc(2 << 20)")
        count = 0
        while other.error("alloc(2 << 20)") == 0:
            count += 1
        assert count * BLOCK == LIMIT - 2 * CONTEXT - BLOCK


def test_a_broker_that_is_killed_and_comes_back_has_the_same_books(container: Contained) -> None:
    broker = container.place.broker
    with program(container) as one:
        one.ask("a = alloc(200 << 20)")
        broker.kill()
        one.say("b = alloc(100 << 20)")
        assert not one.has_answered(within_s=0.3)
        broker.start()
        one.answer()
        assert charged(container) >= container.place.held(one.pid) == CONTEXT + 300 * MIB
        assert one.error("alloc(200 << 20)") == OUT_OF_MEMORY
        one.ask("free(a)")
        one.ask("alloc(200 << 20)")


def test_each_context_needs_room_which_is_there_again_once_the_card_shows_what_it_took(container: Contained) -> None:
    measured = container.place.root / STATE / "contexts.json"
    with program(container) as one:
        until(measured.exists, why=lambda: "what a context takes on this card is not known")
        settled(container, one.pid)
        one.ask(f"a = alloc({LIMIT - 2 * CONTEXT})")
        one.ask("b = alloc(2 << 20)")
        assert one.error("told('cuCtxCreate_v2', 0, 0)") == OUT_OF_MEMORY
        one.ask("free(b)")
        one.ask("c = told('cuCtxCreate_v2', 0, 0)")
        one.ask(f"b = alloc({CONTEXT})")
        assert container.place.held(one.pid) == LIMIT
