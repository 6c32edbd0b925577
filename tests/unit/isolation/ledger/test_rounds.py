"""A refusal that is sure is right: at some moment while it was asked for, all claimed more than the limit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from unit.isolation.ledger.callers import World

STEPS = 300


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 4))
def test_whatever_happens_in_between_nobody_is_refused_with_room(seed: int, count: int) -> None:
    world = World(seed, count)
    for _ in range(STEPS):
        world.step()


def test_most_refusals_become_sure_and_room_is_lent() -> None:
    world = World(1, 3)
    for _ in range(20 * STEPS):
        world.step()
    assert world.refused > 20
    assert world.lent > 20
