"""The broker's answers to a process of a container, over real sockets."""

from __future__ import annotations

from uuid import UUID

import pytest

from isolation.broker.workers import workers
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import What
from partage_simgpu.description import card_uuid
from support.isolated import Contained, Isolated
from support.simgpu import NODE

pytestmark = pytest.mark.slow
MIB = 1 << 20


def test_a_container_sees_its_cards_and_their_limits(place: Isolated) -> None:
    with place.prepare([512 * MIB, 256 * MIB]).client() as client:
        assert client.cards == 2
        for number, memory in enumerate((512 * MIB, 256 * MIB)):
            told = wire.read_card(client.ask(What.CARD, card=number))
            assert UUID(bytes=told.uuid) == UUID(card_uuid(NODE, number).removeprefix("GPU-"))
            assert (told.memory, told.share, told.limit, told.is_mig) == (memory, 100, 1000, 0)


def test_memory_is_lent_up_to_the_limit_and_seen_by_all(container: Contained) -> None:
    with workers(container, 2) as (one, other):
        assert one.do("client.take(700 << 20)")
        assert not other.do("client.take(400 << 20)")
        assert other.do("client.view()[0]") == 1024 * MIB
        assert other.do("client.view()[1]") >= 700 * MIB
    assert container.told().cards[0].refused >= 1


def test_a_context_is_measured_before_its_process_looks(container: Contained) -> None:
    with workers(container, 1) as (one,):
        assert one.do("context()")
        limit, charged, fixed = one.do("tuple(client.view())")
        assert (limit, charged, fixed) == (1024 * MIB, 64 * MIB, 64 * MIB)


def test_all_processes_of_the_container_are_listed_and_no_others(place: Isolated, container: Contained) -> None:
    stranger = place.prepare(100 * MIB)
    with workers(container, 5) as mine, workers(stranger, 1) as (other,):
        assert other.do("client.take(1 << 20)")
        for number, worker in enumerate(mine):
            assert worker.do(f"client.take({number + 1} << 20)")
        found = mine[0].do("client.processes()")
        assert found == sorted((worker.pid, (number + 1) * MIB) for number, worker in enumerate(mine))
