"""Every process that computes may write anything into a timeline: reading it terminates, and is safe."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simgpu.time.lines import DAEMON, NEVER, ROWS, Timeline, worker

_ROUNDS = 100
_OF_WORKERS = (1, 2, 3)


@pytest.fixture
def line() -> Iterator[Timeline]:
    with closing(Timeline(time.monotonic_ns())) as line:
        yield line


@given(st.integers(), st.sampled_from([8, 64, 4096, 300_000]), st.integers(1, 2**63))
def test_any_words_in_a_timeline_lead_to_an_answer(seed: int, width: int, now: int) -> None:
    line, chance = Timeline(), random.Random(seed)  # noqa: S311 - it makes inputs, no secrets
    with closing(line):
        for _ in range(200):
            anywhere, a_row, current = chance.randrange(line.bytes), 64 + chance.randrange(ROWS) * 64, line.current_at()
            at = chance.choice([chance.randrange(width), a_row, anywhere, current + chance.randrange(32)])
            number = chance.choice([0, 2**64 - 1, 2**32 - 1, chance.randrange(2**20), chance.randrange(2**64)])
            line.write(min(at, line.bytes - 8), number)
        for writer in (DAEMON, 0, 63):
            line.advance(now, writer)
        line.begin(63)
        assert len(line.received()) == ROWS
        line.wall_of(line.share(1), now)


@pytest.mark.slow
def test_processes_that_are_killed_or_stopped_anywhere_cost_the_others_no_time(line: Timeline) -> None:
    """One row has endless work, so every nanosecond goes to some row: the sum must be exact."""
    start, chance, victims = line.wall(), random.Random(0), 0  # noqa: S311 - it chooses victims
    for row in (0, *_OF_WORKERS):
        line.begin(row)
    line.publish(0, NEVER)
    for _ in range(_ROUNDS):
        had = line.received(4)
        workers = [_started(line, row) for row in _OF_WORKERS]
        try:
            while any(line.share(row).received <= had[row] for row in _OF_WORKERS):
                line.advance(time.monotonic_ns())
            for victim in chance.sample(workers, 2):
                os.kill(victim.pid, chance.choice([signal.SIGSTOP, signal.SIGKILL]))
                victims += 1
                _passes(line, start)
        finally:
            _ended(workers)
        for row in _OF_WORKERS:
            line.begin(row)
        _passes(line, start)
    assert victims == 2 * _ROUNDS


def _passes(line: Timeline, start: int) -> None:
    """The card goes on, and the received times add up to the elapsed time."""
    before = line.share(0).received
    while line.share(0).received <= before:
        line.advance(time.monotonic_ns(), writer=0)
    wall, received = line.snapshot()
    assert sum(received) == wall - start


def _started(line: Timeline, row: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([worker(), str(line.fd), str(row)], pass_fds=[line.fd])


def _ended(workers: list[subprocess.Popen[bytes]]) -> None:
    for one in workers:
        one.kill()
    for one in workers:
        one.wait()
