"""For any order of events, the flow-control windows agree at both ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.splice.world import World

STORIES = st.binary(max_size=400)


@given(STORIES)
def test_both_ends_count_the_same_after_any_story(story: bytes) -> None:
    world = World()
    world.play(iter(story))
    world.finish()
    if world.pair.over is None:
        world.check()


@given(STORIES)
def test_nothing_is_kept_and_all_are_told_wherever_a_story_breaks_off(story: bytes) -> None:
    world = World()
    world.play(iter(story))
    world.break_off()
