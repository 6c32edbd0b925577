"""A pod without movable memory is suspended by the driver: all its processes are moved off, and restored."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from isolation.migration.stage import CARD, CONTEXT, MIB, crowded, movable, moving, name_of, partage, program
from partage_isolation.wire.messages import Suspend, Suspended
from simgpu.memory.programs import KIB
from support.cgroups import memory_group
from support.isolated import Contained, Isolated, isolated, until
from support.simgpu import card, other_driver
from support.steered import Steered

pytestmark = pytest.mark.slow

PART = 16 * MIB


@pytest.fixture(scope="module")
def place() -> Iterator[Isolated]:
    with crowded() as made:
        yield made


@contextmanager
def holding(place: Isolated, memory: int = 300 * MIB) -> Generator[tuple[Contained, Steered]]:
    """A container whose memory stays, and a program in it with data in its memory."""
    container = movable(place, memory, moves=False)
    with program(container) as one:
        one.ask(f"xs = [alloc({PART}) for _ in range(5)]; k = kernel('us_100')")
        one.ask(f"[write(x, bytes([n]) * {PART}) for n, x in enumerate(xs)]; run(k)")
        yield container, one


def is_whole(one: Steered) -> bool:
    return bool(one.ask(f"all(same(x, bytes([n]) * {PART}) for n, x in enumerate(xs))"))


def used(place: Isolated) -> int:
    return place.node.status()[0].used_bytes


def asked(place: Isolated, container: Contained, *, is_on: bool) -> Suspended:
    return place.broker.client.suspend(Suspend(key=container.key, is_on=is_on))


def brought(place: Isolated, container: Contained, *, is_on: bool) -> None:
    until(lambda: asked(place, container, is_on=is_on).is_done)


def test_its_memory_and_context_leave_the_card_and_come_back_whole(place: Isolated) -> None:
    with holding(place) as (container, one):
        before = used(place)
        done = partage(place, "suspend", name_of(container))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{name_of(container)} main: suspended, ")
        assert moving(container).is_suspended
        assert (moving(container).resident_bytes, used(place)) == (0, before - 5 * PART - CONTEXT)
        one.say("run(k)")
        assert not one.has_answered(within_s=0.3)
        done = partage(place, "resume", name_of(container))
        assert done.returncode == 0, done.stderr
        one.answer()
        assert is_whole(one)
        assert container.told().cards[0].moving is None
        assert used(place) == before
        assert place.told().findings == ()


def test_all_its_processes_go_and_one_that_begins_meanwhile_waits(place: Isolated) -> None:
    with holding(place) as (container, one), program(container) as other:
        other.ask("y = alloc(MIB); write(y, 'kept')")
        brought(place, container, is_on=True)
        assert used(place) == 0
        env = container.environment
        with Steered(other.process.args, env=env, refusals="cuda") as late:  # type: ignore[arg-type]
            late.say("start()")
            assert not late.has_answered(within_s=0.3)
            brought(place, container, is_on=False)
            late.answer()
        assert is_whole(one)
        assert other.ask("text(y, 4)") == "kept"


def test_others_that_move_have_its_room_and_leave_it_when_it_is_resumed() -> None:
    """Both fit on the card while it is suspended, and one of them beside it."""
    with crowded() as place, holding(place, 400 * MIB) as (container, one):
        first, second = movable(place, 450 * MIB), movable(place, 450 * MIB)
        with program(first) as two, program(second) as three:
            brought(place, container, is_on=True)
            for each in (two, three):
                each.ask(f"ys = [alloc({PART}) for _ in range(22)]")
            until(lambda: not moving(first).moved_bytes and not moving(second).moved_bytes)
            brought(place, container, is_on=False)
            assert is_whole(one)
            held = sum(moving(each).resident_bytes for each in (first, second))
            assert held + 2 * CONTEXT <= CARD - 400 * MIB
            for each in (two, three):
                each.ask("[free(y) for y in ys] and None")


def test_a_process_that_the_driver_refuses_runs_on_and_it_is_said_why(place: Isolated) -> None:
    with holding(place) as (container, one), program(container) as other:
        other.ask("y = managed(MIB)")
        done = partage(place, "suspend", name_of(container))
        assert done.returncode == 1
        why = f"the driver can't take away process {other.pid}: it has memory that can't leave a card: managed, or"
        assert f"runs on: {why} shared" in done.stderr
        for each in (one, other):
            each.ask("alloc(MIB) and None")
        assert is_whole(one)
        until(lambda: container.told().cards[0].moving is None)
        assert partage(place, "resume", name_of(container)).returncode == 0


def test_without_room_for_its_bytes_on_the_host_it_is_refused_before_anything_is_locked(place: Isolated) -> None:
    with memory_group(64 * MIB + 5 * PART) as group, holding(place) as (container, one):
        (group / "cgroup.procs").write_text(str(one.pid))
        done = partage(place, "suspend", name_of(container))
        assert done.returncode == 1
        assert re.search(rf"needs \d+ MiB of host memory, and {group} leaves \d+ MiB; raise", done.stderr)
        assert container.told().cards[0].moving is None
        one.ask("run(k)")
        assert is_whole(one)


def test_it_stays_suspended_over_restarts_of_the_broker_and_comes_back(place: Isolated) -> None:
    with holding(place) as (container, one):
        brought(place, container, is_on=True)
        place.broker.restart()
        brought(place, container, is_on=True)
        assert (moving(container).is_suspended, used(place)) == (True, 0)
        one.say("run(k)")
        assert not one.has_answered(within_s=0.3)
        place.broker.restart()
        brought(place, container, is_on=False)
        one.answer()
        assert is_whole(one)


def test_killed_while_it_is_away_it_leaves_nothing(place: Isolated) -> None:
    with holding(place) as (container, one):
        brought(place, container, is_on=True)
        one.send(signal.SIGKILL)
        until(lambda: not container.told().processes)
        until(lambda: container.told().cards[0].charged_bytes == 0)
        brought(place, container, is_on=False)
        with program(container) as other:
            other.ask("alloc(MIB) and None")


def test_a_driver_without_checkpoints_lets_it_run_on() -> None:
    with crowded() as place:
        other_driver(place.node, "565.57.01")
        with holding(place) as (container, one):
            done = partage(place, "suspend", name_of(container))
            assert done.returncode == 1
            assert (
                "runs on: the driver has no checkpoints of processes; those from branch 570 on have them" in done.stderr
            )
            assert is_whole(one)


@pytest.mark.extended("fills a GiB and looks at all of it; less is in every run")
def test_a_gibibyte_comes_back_whole() -> None:
    model = card("t4", memory_mib=2048, reserved_mib=0, context_mib=CONTEXT // MIB, module_mib=0)
    with isolated(cards=(model,)) as place:
        place.tell_inventory(2048 * MIB)
        container = movable(place, 1500 * MIB, moves=False)
        with program(container) as one:
            one.ask(f"xs = [alloc({PART}) for _ in range(64)]")
            one.ask(f"ys = [os.urandom({PART // 64}) * 64 for _ in xs]; [write(x, y) for x, y in zip(xs, ys)]; None")
            brought(place, container, is_on=True)
            assert used(place) == 0
            brought(place, container, is_on=False)
            assert one.ask("all(same(x, y) for x, y in zip(xs, ys))")


KILLED_AFTER_S = 0.6


def lives_through(place: Isolated, seed: int) -> None:
    """Suspend and resume at random, while the broker or a program of the pod is killed at any moment."""
    chance = random.Random(seed)  # noqa: S311
    with holding(place) as (container, one), program(container) as other:
        other.ask(f"y = alloc({64 * KIB})")
        for _ in range(chance.randint(1, 3)):
            asked(place, container, is_on=chance.random() < 0.7)
            chance_s = chance.random() * KILLED_AFTER_S
            if not one.has_answered(within_s=chance_s) and chance.random() < 0.6:
                place.broker.restart()
        if chance.random() < 0.3:
            other.send(signal.SIGKILL)
        brought(place, container, is_on=False)
        assert is_whole(one)
        one.ask("run(k)")
    until(lambda: used(place) == 0, why=lambda: f"seed {seed}: {used(place)} bytes are left")


@pytest.mark.parametrize("seed", range(4))
def test_no_byte_is_lost_and_nobody_locked_for_ever_whoever_is_killed(place: Isolated, seed: int) -> None:
    lives_through(place, seed)


@pytest.mark.extended("a hundred brokers that are killed; a few are in every run")
@pytest.mark.parametrize("seed", range(4, 100))
def test_nor_by_any_other_chance(place: Isolated, seed: int) -> None:
    lives_through(place, seed)
