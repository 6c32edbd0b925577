"""Processes race for the last byte, by every path: the limit holds, and none is refused while there is room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.isolation.place import MIB, Place, a_place
from bench.isolation.race import KINDS, Course, Race, Seen
from bench.isolation.reclaim import ask, program
from bench.memory import CARD, CONTEXT_MIB
from support.extent import is_all
from support.isolated import Contained
from support.simgpu import card, simulated_node

pytestmark = pytest.mark.slow

LIMIT_MIB = 2048
OUT_OF_MEMORY = 2
RESTARTS = 4
MOST_ROUNDS = 30


def course(place: Place, container: Contained, seed: int, *, kinds: str = KINDS, processes: int = 6) -> Course:
    return Course(
        container.environment,
        container.limit,
        CONTEXT_MIB,
        seed=seed,
        kinds=kinds,
        processes=processes,
        settled=place.settled(container),
        charged=place.charged,
    )


def within_limits(place: Place, container: Contained, seen: Seen) -> None:
    """Invariants after every race of one container on one card."""
    assert seen.wrong == []
    assert place.node.status()[0].peak_bytes <= container.limit
    place.until("all is returned", lambda: container.told().cards[0].charged_bytes == 0)


def test_the_judge_of_refusals_agrees_with_a_card_that_is_full(tmp_path: Path) -> None:
    full = card("h100", memory_mib=LIMIT_MIB, context_mib=CONTEXT_MIB, reserved_mib=0, managed=None)
    with simulated_node(tmp_path, cards=(full,)) as node:
        with Race(Course(node.environment, LIMIT_MIB * MIB, CONTEXT_MIB), tmp_path / "page") as race:
            for _ in range(10):
                race.round()
            race.finish()
        assert race.seen.wrong == []
        assert race.seen.refused > 0
        assert node.status()[0].used_bytes == 0


def test_the_limit_holds_to_the_byte_and_no_refusal_is_wrong(tmp_path: Path) -> None:
    with a_place(cards=(CARD,)) as place:
        container = place.container(memory_mib=LIMIT_MIB)
        place.warm_up(container, CONTEXT_MIB, tmp_path)
        with Race(course(place, container, 1), tmp_path / "page") as race:
            for _ in range(15 if is_all() else 6):
                race.round()
            while not race.seen.opened and race.seen.rounds < MOST_ROUNDS:  # on a busy machine few open each other's
                race.round()
            race.finish()
        assert race.seen.refused > 0
        assert race.seen.opened > 0
        within_limits(place, container, race.seen)


@pytest.mark.parametrize("end", ["killed", "frees"])
def test_what_another_process_has_open_stays_charged_when_its_exporter(end: str) -> None:
    with a_place(cards=(CARD,)) as place:
        container = place.container(memory_mib=LIMIT_MIB)
        with program(container) as one, program(container) as two, program(container) as three:
            assert ask(one, "take 1200")["result"] == 0
            assert ask(two, f"open {ask(one, 'export')['handle']}")["result"] == 0
            if end == "killed":
                one.kill()
                one.wait()
            else:
                ask(one, "free")
            place.until("the card has let go of its exporter", lambda: place.isolation.held(one.pid) < MIB * 1200)
            results = [ask(three, "take 1200")["result"] for _ in range(3)]
            for each in (one, two, three):
                each.kill()
        assert place.node.status()[0].peak_bytes <= container.limit
        assert results == [OUT_OF_MEMORY] * 3


def test_books_agree_with_the_card_whenever_nothing_moves(tmp_path: Path) -> None:
    with a_place(cards=(CARD,), settings={"audit_every_s": "0.1"}) as place:
        container = place.container(memory_mib=LIMIT_MIB)
        place.warm_up(container, CONTEXT_MIB, tmp_path)
        with Race(
            course(place, container, 5, kinds="plain,small,pitch,managed,pool,mapped"), tmp_path / "page"
        ) as race:
            for _ in range(10 if is_all() else 5):
                race.round()
                place.until("the books agree with the card", lambda: disagreement(place, container) is None)
            race.finish()


def disagreement(place: Place, container: Contained) -> str | None:
    """Each living process's use, in the ledger and on the card."""
    on_card = {each.pid: each.bytes for each in place.node.status()[0].processes}
    for process in container.told().processes:
        held = [each for each in process.cards if each.card == container.question.grants[0].card]
        charged = sum(each.used_bytes + each.overhead_bytes for each in held)
        if charged != on_card.get(process.pid, 0):
            return f"process {process.pid} has {on_card.get(process.pid, 0)} bytes, the books say {charged}"
    return None


def test_a_broker_that_is_killed_again_and_again_lets_nobody_over_the_limit(tmp_path: Path) -> None:
    with a_place(cards=(CARD,)) as place:
        container = place.container(memory_mib=LIMIT_MIB)
        place.warm_up(container, CONTEXT_MIB, tmp_path)
        with Race(replace(course(place, container, 6), may_be_away=True), tmp_path / "page") as race:
            for _ in range(RESTARTS):
                race.round(meanwhile=place.isolation.broker.restart)
            race.finish()
        assert race.seen.rounds == RESTARTS
        assert place.node.status()[0].peak_bytes <= container.limit
