"""Simulated programs, which launch, wait for their work, or sleep. Pure.

A program is a generator of steps, and receives the time after each. Kernels far shorter than a window are launched in
batches that take the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, NamedTuple

from partage_isolation.timeslices.durations import MS
from support.lease_simulation.events import Chance

US: Final = 1000
_BATCH: Final = 200 * US


class Launch(NamedTuple):
    """Launch work of this duration; returns at once if the gate is open and the window is not full."""

    work_ns: int


class Meet(NamedTuple):
    """A kernel that spins until those of all other processes of the container run, and then takes this long."""

    work_ns: int


class Wait(NamedTuple):
    """Wait for all of one's own work, and this long after it."""

    then_ns: int = 0


class Until(NamedTuple):
    when: int


class Took(NamedTuple):
    """Record a duration for the figures."""

    took_ns: int


Step = Launch | Meet | Wait | Until | Took
Program = Generator[Step, int, None]
Workload = Callable[[Chance, int], Program]
"""A function that makes a program from its random numbers and its start time."""


def flood(kernel_ns: int) -> Workload:
    return lambda _chance, _now: _flood(max(kernel_ns, _BATCH))


def launch_and_wait(kernel_ns: int, gap_ns: int = 50 * US) -> Workload:
    """Waits for each kernel, with a gap before the next one."""
    return lambda _chance, _now: _launch_and_wait(max(kernel_ns, _BATCH), gap_ns)


def mixed(*kernels_ns: int, odds: tuple[int, ...] = ()) -> Workload:
    """Kernels of random lengths, without ever waiting."""
    return lambda chance, _now: _mixed(chance, kernels_ns, odds or (1,) * len(kernels_ns))


def inference(period_ns: int = 30 * MS, kernels: int = 6, kernel_ns: int = MS) -> Workload:
    """One request for each period, answered when its kernels are done."""
    return lambda _chance, now: _inference(now, period_ns, kernels, kernel_ns)


def on_and_off(on_ns: int, off_ns: int, kernel_ns: int = MS) -> Workload:
    """Alternates between flooding and idling."""
    return lambda _chance, now: _on_and_off(now, on_ns, off_ns, kernel_ns)


def training(kernels: int = 3, kernel_ns: int = MS, reduce_ns: int = MS // 2) -> Workload:
    """Training steps on several cards: kernels, then a collective."""
    return lambda _chance, _now: _training(kernels, kernel_ns, reduce_ns)


def never_ending(after_ns: int, kernel_ns: int = MS) -> Workload:
    """Floods until it launches a kernel that never ends."""
    return lambda _chance, now: _never_ending(now + after_ns, kernel_ns)


def idle() -> Workload:
    """Exists, and requests nothing."""
    return lambda _chance, _now: _idle()


def _flood(kernel_ns: int) -> Program:
    while True:
        yield Launch(kernel_ns)


def _launch_and_wait(kernel_ns: int, gap_ns: int) -> Program:
    while True:
        yield Launch(kernel_ns)
        yield Wait(gap_ns)


def _mixed(chance: Chance, kernels_ns: tuple[int, ...], odds: tuple[int, ...]) -> Program:
    lengths = [length for length, weight in zip(kernels_ns, odds, strict=True) for _ in range(weight)]
    while True:
        yield Launch(lengths[chance.below(len(lengths))])


def _inference(begin: int, period_ns: int, kernels: int, kernel_ns: int) -> Program:
    asked = begin
    while True:
        asked += period_ns
        yield Until(asked)
        for _ in range(kernels):
            yield Launch(kernel_ns)
        now = yield Wait()
        yield Took(now - asked)


def _on_and_off(begin: int, on_ns: int, off_ns: int, kernel_ns: int) -> Program:
    now = begin
    while True:
        end = now + on_ns
        while now < end:
            now = yield Launch(kernel_ns)
        now = yield Wait()
        now = yield Until(now + off_ns)


def _training(kernels: int, kernel_ns: int, reduce_ns: int) -> Program:
    while True:
        for _ in range(kernels):
            yield Launch(kernel_ns)
        yield Meet(reduce_ns)


def _never_ending(end: int, kernel_ns: int) -> Program:
    now = 0
    while now < end:
        now = yield Launch(kernel_ns)
    while True:
        yield Launch(1 << 60)


def _idle() -> Program:
    while True:
        yield Until(1 << 60)
