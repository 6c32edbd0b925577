"""Cost of movable memory: two programs whose memory does not fit together use the card in turns.

Time: each of two programs holds 60 GiB of a card of 80 GiB, and floods it. By shares, in turns, whole working sets move
over the modelled link, in both directions at once. The limit of the link is the elapsed time without the time of the
bytes that had to move; the card's own account says how much of it was computing. For comparison, in the same run: two
programs that use managed memory alone, whose kernels wait for page faults in turns of one kernel, and a second program
without either, which is refused. Then a program of 40 GiB is suspended and resumed, without a byte of contents;
and one of 4 GiB that is not movable, by the driver.

Contents: two programs of 3 GiB each on a card of 4 GiB, which keeps all bytes. Each fills its memory and checks all of
it repeatedly, while both use the card.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from bench.harness import Bench
from partage_isolation.library.objects import built
from partage_isolation.wire.messages import MigrationReport, Suspend
from simgpu.memory.programs import CLIENT
from support.isolated import Contained, Isolated, isolated, until
from support.sharing import Running, Sharer, sharing
from support.simgpu import card
from support.steered import Steered

GIB: Final = 1 << 30
MIB: Final = 1 << 20
CARD_GIB: Final = 80
CONTEXT_MIB: Final = 500
BUS: Final = 50
"""Bytes per nanosecond in each direction."""
OUT: Final = (0.059, 2.476e9)
"""The simulated driver's checkpoints: minimum seconds, and bytes per second."""
BACK: Final = (0.102, 7.837e9)
WORKING_SET_GIB: Final = 60
SMOKE: Final = 8
"""A smoke run divides all sizes by this."""
SECONDS: Final = 60
ROUNDS: Final = 4
PART: Final = 256 * MIB
READ_MS: Final = 21
"""The time to read 60 GiB at the rate that an H200 read its own memory: 3042 GB/s."""


@contextmanager
def place_of(memory_mib: int, *, context_mib: int = CONTEXT_MIB) -> Generator[Isolated]:
    model = card("h100", memory_mib=memory_mib, reserved_mib=0, context_mib=context_mib, module_mib=0, bus_gb_per_s=BUS)
    with isolated(cards=(model,), library=built()) as place:
        place.tell_inventory(memory_mib * MIB)
        yield place


def mib(bench: Bench, gib: int) -> int:
    return (gib << 10) // (SMOKE if bench.smoke else 1)


def sharer(bench: Bench, name: str, share: int, *, movable: bool = True) -> Sharer:
    size_mib = mib(bench, WORKING_SET_GIB)
    words = ("--mib", str(size_mib), "--kernel-us", "1000")
    memory_bytes = (size_mib + 1024) * MIB
    return Sharer(name, share, "flood", words, memory_bytes=memory_bytes, movable=movable)


def moving(container: Contained) -> MigrationReport:
    told = container.told().cards[0].moving
    assert told is not None
    return told


def busy_ns(place: Isolated, running: Sequence[Running]) -> list[int]:
    account = {process.pid: process.busy_ns for process in place.node.status()[0].processes}
    return [each.busy_ns(account) for each in running]


def in_turns(bench: Bench, place: Isolated, shares: tuple[int, int]) -> None:
    name = f"2 x 60 GiB on 80 GiB, shares {shares[0]}/{shares[1]}"
    sharers = [sharer(bench, f"program-{number}", share) for number, share in enumerate(shares)]
    with sharing(place, *sharers) as running:
        containers = [each.containers[0] for each in running]
        until(lambda: all(moving(each).times for each in containers), why=lambda: f"{name}: nothing moves")
        end_of_turn(containers[0])
        had, out, began = busy_ns(place, running), carried(containers), time.monotonic()
        end_of_turn(containers[0])  # whole rounds: each has had equally many turns
        while not bench.smoke and time.monotonic() < began + SECONDS:
            end_of_turn(containers[0])
        got = [now - before for now, before in zip(busy_ns(place, running), had, strict=True)]
        wall_ns = (time.monotonic() - began) * 1e9
        times = carried(containers) - out
    bench.engaged(f"{name}: memory moved", times >= 1)
    swap_ns = (2 * (mib(bench, WORKING_SET_GIB) + CONTEXT_MIB) - mib(bench, CARD_GIB)) * MIB / BUS
    allowed_ns = wall_ns - times * swap_ns
    part = got[0] / max(1, sum(got))
    sys.stderr.write(f"{name}: {times} moves in {wall_ns / 1e9:.0f} s, {part:.3f} to the first\n")
    bench.figure(f"{name}: moves", times)
    bench.figure(f"{name}: seconds of a turn", wall_ns / 1e9 / max(1, times))
    bench.bar(f"{name}: of what the link allows", sum(got) / allowed_ns, at_least=0.90, unit="of the time")
    bench.figure(f"{name}: computing", sum(got) / wall_ns)
    bench.bar(f"{name}: furthest from its share", abs(part - shares[0] / sum(shares)), at_most=0.03, unit="of the time")


def end_of_turn(container: Contained) -> None:
    before = moving(container).times
    until(lambda: moving(container).times > before, why=lambda: "its turn does not end")


def carried(containers: Sequence[Contained]) -> int:
    """How often the memory of one of them was moved out."""
    return sum(moving(each).times for each in containers)


def refused(bench: Bench, place: Isolated) -> None:
    """Without moving the second program gets no memory, so it computes nothing."""
    until(lambda: not place.node.status()[0].processes)
    with sharing(place, sharer(bench, "first", 500, movable=False)) as running:
        until(running[0].is_known)
        time.sleep(1)
        second = place.prepare((mib(bench, WORKING_SET_GIB) + 1024) * MIB, share=500)
        second.install(built())
        with program(place, second) as other:
            error = other.error(f"alloc({mib(bench, WORKING_SET_GIB) * MIB})")
    bench.engaged("without moving: the second is refused", error == 2)


@contextmanager
def program(place: Isolated, container: Contained | None = None) -> Generator[Steered]:
    """A program in a container, or without partage."""
    env = {**place.node.environment, **({"LD_PRELOAD": container.preload} if container else {})}
    with Steered([sys.executable, CLIENT], env=env, refusals="cuda") as started:
        started.ask("start()")
        yield started


def by_faults(bench: Bench, place: Isolated) -> None:
    """Two programs with managed memory, without partage, in turns: each kernel reads its program's memory once."""
    until(lambda: not place.node.status()[0].processes)
    size, kernels = mib(bench, WORKING_SET_GIB) * MIB, 1 if bench.smoke else 2
    with program(place) as one, program(place) as other:
        both = (one, other)
        for each in both:
            each.ask(f"[managed({PART}) for _ in range({size // PART})]; None")
        for each in both:
            each.ask(f"launch('sim_{READ_MS}ms_managed'); synchronize()")
        began = time.monotonic()
        for _ in range(kernels):
            for each in both:
                each.ask(f"launch('sim_{READ_MS}ms_managed'); synchronize()")
        wall_s = time.monotonic() - began
    bench.figure("managed memory alone: computing", 2 * kernels * READ_MS / 1e3 / wall_s)
    bench.figure("managed memory alone: seconds for a kernel of each", wall_s / kernels)


def suspended(bench: Bench, place: Isolated) -> None:
    """Suspend and resume, one after the other, against the link's time for as many bytes."""
    size = (4 if bench.smoke else 40) * GIB
    container = place.prepare(size + 2 * GIB, share=500, movable=True)
    container.install(built())
    with program(place, container) as one:
        one.ask(f"xs = [alloc({GIB}) for _ in range({size // GIB})]")
        until(lambda: moving(container).resident_bytes == size)
        took_s = list[float]()
        for is_on in (True, False):
            asked = Suspend(key=container.key, is_on=is_on)
            began = time.monotonic()
            while not place.broker.client.suspend(asked).is_done:
                time.sleep(0.001)
            took_s.append(time.monotonic() - began)
    link_s = size / BUS / 1e9
    bench.bar("40 GiB suspended", took_s[0] / link_s, at_most=1.2, unit="of the link's time")
    bench.bar("40 GiB resumed", took_s[1] / link_s, at_most=1.2, unit="of the link's time")


def taken_away(bench: Bench) -> None:
    """Suspend and resume by the driver, against the time that the simulated one takes for as many bytes.

    Bounded by this machine's own memory, which the broker checks.
    """
    size = 4 * GIB
    with place_of(mib(bench, CARD_GIB)) as place:
        container = place.prepare(size + 2 * GIB, share=500)
        container.install(built())
        with program(place, container) as one:
            one.ask(f"xs = [alloc({GIB}) for _ in range({size // GIB})]")
            for is_on, (least_s, rate), said in ((True, OUT, "suspended"), (False, BACK, "resumed")):
                asked, began = Suspend(key=container.key, is_on=is_on), time.monotonic()
                while not place.broker.client.suspend(asked).is_done:
                    time.sleep(0.001)
                driver_s = least_s + (size + CONTEXT_MIB * MIB) / rate
                beyond_s = time.monotonic() - began - driver_s
                bench.bar(f"4 GiB {said} by the driver", beyond_s, at_most=1.0, unit="s beyond the driver's own")
            one.ask("info() and None")


def contents(bench: Bench) -> None:
    """Checks all bytes of both programs, in turns."""
    size = (GIB if bench.smoke else 3 * GIB) // PART * PART
    with place_of(size * 4 // 3 // MIB, context_mib=64) as place:
        containers = [place.prepare(size + GIB, share=400, movable=True) for _ in range(2)]
        for container in containers:
            container.install(built())
        wrong = looked = 0
        with program(place, containers[0]) as one, program(place, containers[1]) as other:
            for seed, each in enumerate((one, other)):
                each.ask(f"xs = [alloc({PART}) for _ in range({size // PART})]")
                each.ask("import random")
                line = f"random.Random({seed} * 1000 + n).randbytes({MIB}) * {PART // MIB}"
                each.ask(f"ys = [{line} for n in range(len(xs))]; None")
                each.ask("[write(x, y) for x, y in zip(xs, ys)]; None")
            for _ in range(1 if bench.smoke else ROUNDS):
                for each in (one, other):
                    same = each.ask("[same(x, y) for x, y in zip(xs, ys)]")
                    wrong, looked = wrong + same.count(False), looked + len(same) * PART
            times = carried(containers)
        bench.engaged("contents: memory moved", times >= 2)
        bench.figure("contents: GiB looked at", looked / GIB)
        bench.figure("contents: moves", times)
        bench.bar("contents: parts with a wrong byte", wrong, at_most=0, unit="parts")


def main() -> int:
    bench = Bench.from_argv("beyond")
    with place_of(mib(bench, CARD_GIB)) as place:
        in_turns(bench, place, (500, 500))
        in_turns(bench, place, (300, 700))
        suspended(bench, place)
    taken_away(bench)
    with place_of(mib(bench, CARD_GIB)) as place:
        refused(bench, place)
        by_faults(bench, place)
    contents(bench)
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
