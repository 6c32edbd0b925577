"""A pod is suspended: its memory leaves the card and its programs wait; when it is resumed, nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isolation.migration.stage import CONTEXT, MIB, crowded, movable, moving, name_of, partage, program
from support.isolated import Isolated, until

pytestmark = pytest.mark.slow

PART = 16 * MIB


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    with crowded() as made:
        yield made


def test_its_memory_leaves_the_card_and_comes_back_whole(place: Isolated) -> None:
    container = movable(place, 500 * MIB)
    with program(container) as one:
        one.ask(f"xs = [alloc({PART}) for _ in range(10)]")
        one.ask(f"[write(x, bytes([n]) * {PART}) for n, x in enumerate(xs)]")
        done = partage(place, "suspend", name_of(container))
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{name_of(container)} main: suspended, 160 MiB of 160 MiB on the host\n"
        assert place.held(one.pid) == CONTEXT
        one.say("[read(x, 4) for x in xs]")
        assert not one.has_answered(within_s=0.5)
        done = partage(place, "resume", name_of(container))
        assert done.stdout == f"{name_of(container)} main: resumed, 160 MiB of 160 MiB on the card\n"
        assert one.answer() == [[n] * 4 for n in range(10)]


def test_it_takes_no_more_memory_and_launches_nothing_meanwhile(place: Isolated) -> None:
    container = movable(place, 500 * MIB)
    with program(container) as one, program(container) as other:
        one.ask(f"x = alloc({PART}); k = kernel('us_100')")
        one.ask("run(k)")
        partage(place, "suspend", name_of(container))
        one.say("run(k)")
        other.say(f"alloc({PART})")
        assert not one.has_answered(within_s=0.5)
        assert not other.has_answered()
        partage(place, "resume", name_of(container))
        one.answer()
        other.answer()


def test_others_have_its_room_and_it_stays_out_until_it_is_resumed(place: Isolated) -> None:
    first, second = movable(place, 700 * MIB), movable(place, 900 * MIB)
    with program(first) as one, program(second) as two:
        one.ask(f"xs = [alloc({PART}) for _ in range(30)]")
        partage(place, "suspend", name_of(first))
        two.ask(f"xs = [alloc({PART}) for _ in range(50)]")
        two.ask("[free(x) for x in xs]; None")
        assert moving(first).is_suspended
        assert moving(first).resident_bytes == 0
        partage(place, "resume", name_of(first))
        assert moving(first).moved_bytes == 0


def test_it_stays_suspended_over_a_restart_of_the_broker(place: Isolated) -> None:
    container = movable(place, 500 * MIB)
    with program(container) as one:
        one.ask(f"x = alloc({PART}); write(x, b'kept')")
        partage(place, "suspend", name_of(container))
        place.broker.restart()
        until(lambda: moving(container).moved_bytes == PART)
        one.say("text(x, 4)")
        assert not one.has_answered(within_s=0.5)
        partage(place, "resume", name_of(container))
        assert one.answer() == "kept"
