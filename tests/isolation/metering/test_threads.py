"""Many threads at once: nobody is refused what fits, and at the end nothing is charged."""

from __future__ import annotations

import pytest

from isolation.metering.stage import LIMIT, MIB, Program

pytestmark = pytest.mark.slow


def test_threads_that_allocate_and_free_leave_nothing_behind(one: Program) -> None:
    assert one.ask("hammer(16)") == []
    one.ask("call('cuCtxSynchronize')")
    one.ask("call('cuMemPoolTrimTo', pool_of(), 0)")
    assert one.used == one.held == 0


RACE = """
def race(count, turns):
    context, wrong = told('cuCtxGetCurrent'), []
    def work(number):
        call('cuCtxSetCurrent', context)
        for turn in range(turns):
            take, give = (alloc, free) if (turn + number) % 3 else (create, release)
            try:
                held = take(2 << 20)
            except Said as said:
                wrong.append(said.number)
            else:
                give(held)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    several([one.start for one in threads]); several([one.join for one in threads])
    return wrong
"""


def test_threads_that_fit_together_are_never_refused(one: Program) -> None:
    """Sixteen times a block is exactly what is left."""
    one.ask(f"a = alloc({LIMIT - 32 * MIB})")
    one.ask(f"exec({RACE!r}, globals())")
    assert one.ask("race(16, 50)") == []
    one.ask("free(a)")
    assert one.used == one.held == 0
    assert max(status.peak_bytes for status in one.place.node.status()[0].processes) <= LIMIT + 64 * MIB
