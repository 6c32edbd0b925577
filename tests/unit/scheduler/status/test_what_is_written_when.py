"""Pending writes: the latest one wins, and paced writes happen as often as they may."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from partage_scheduler.api import Outbox, Pace
from support.extent import examples


def test_the_latest_word_is_told_once() -> None:
    outbox = Outbox[str, int](most=10, every_s=5)
    outbox.put("a", 1)
    outbox.put("a", 2)
    assert outbox.take(0) == ("a", 2)
    assert outbox.take(0) is None
    assert outbox.due(0) is None


def test_about_one_there_is_time_between_two_words() -> None:
    outbox = Outbox[str, int](most=10, every_s=5)
    outbox.put("a", 1)
    assert outbox.take(0) == ("a", 1)
    outbox.put("a", 2)
    assert outbox.take(4.9) is None
    assert outbox.due(4.9) == 5
    assert outbox.take(5) == ("a", 2)


def test_what_is_withdrawn_is_not_told() -> None:
    outbox = Outbox[str, int](most=10, every_s=5)
    for now in (0, 10):
        outbox.put("a", 1)
        outbox.withdraw("a")
        assert outbox.take(now) is None
        outbox.put("a", 1)
        assert outbox.take(now) == ("a", 1)


def test_too_much_is_dropped_and_counted() -> None:
    outbox = Outbox[int, int](most=2, every_s=5)
    for about in range(4):
        outbox.put(about, 0)
    outbox.put(0, 1)
    assert (len(outbox), outbox.dropped) == (2, 2)


STEPS = st.lists(st.tuples(st.sampled_from(["put", "withdraw", "take"]), st.integers(0, 3)), max_size=60)


@settings(max_examples=examples(40))
@given(STEPS)
def test_whatever_happens_the_last_word_of_each_is_told_in_the_end(steps: list[tuple[str, int]]) -> None:
    outbox, wanted = Outbox[int, int](most=10, every_s=3), dict[int, int]()
    told: dict[int, list[int]] = {about: [] for about in range(4)}
    for now, (what, about) in enumerate(steps):
        match what:
            case "put":
                outbox.put(about, now)
                wanted[about] = now
            case "withdraw":
                outbox.withdraw(about)
                wanted.pop(about, None)
            case _:
                if (found := outbox.take(now)) is not None:
                    assert wanted.pop(found[0]) == found[1]
                    told[found[0]].append(now)
        assert len(outbox) == len(wanted)
    while (due := outbox.due(1000)) is not None:
        found = outbox.take(due)
        assert found is not None
        assert wanted.pop(found[0]) == found[1]
    assert not wanted
    for times in told.values():
        assert all(later - earlier >= 3 for earlier, later in pairwise(times))


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60), st.integers(1, 5))
def test_in_no_time_is_more_done_than_so_many_at_once_and_so_many_a_second(rests: list[float], at_once: int) -> None:
    pace, now, done = Pace(2, at_once=at_once), 0.0, list[float]()
    for rest in rests:
        now += rest
        if pace.due <= now:
            pace.done(now)
            done.append(now)
    for first in range(len(done)):
        for last in range(first, len(done)):
            assert last - first + 1 <= at_once + (done[last] - done[first]) * 2 + 1e-6


@given(st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_who_waits_until_it_is_due_never_waits_longer_than_for_one(rests: list[float]) -> None:
    pace, now = Pace(2, at_once=3), 0.0
    for rest in rests:
        now += rest
        assert pace.due - now <= 0.5 + 1e-6
        now = max(now, pace.due)
        pace.done(now)
