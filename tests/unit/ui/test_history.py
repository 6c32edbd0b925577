"""A container's last hour, minute by minute, and no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_ui.history import MINUTES, History

MINUTE = st.integers(0, 200)


@given(st.lists(st.tuples(MINUTE, st.floats(0, 1)), max_size=40), MINUTE)
def test_each_minute_says_what_was_noted_in_it_last(noted: list[tuple[int, float]], until: int) -> None:
    history, known = History(), dict[int, float]()
    noted.sort(key=lambda each: each[0])
    for minute, part in noted:
        history.note("k", 60.0 * minute, wanted=part, got=part / 2)
        known[minute] = part
    now = max([until, *known])
    found = history.of("k", 60.0 * now)
    expected = [known.get(minute) for minute in range(now - MINUTES + 1, now + 1)] if known else []
    assert [None if each is None else each[0] for each in found] == [
        None if part is None else round(part * 1000) / 1000 for part in expected
    ]


def test_who_is_not_told_of_for_an_hour_is_forgotten_and_no_more_are_kept_than_may_be() -> None:
    history = History(most=2)
    for name in ("a", "b", "c"):
        history.note(name, 0.0, wanted=1, got=1)
    assert (len(history), history.of("c", 0.0)) == (2, ())
    history.note("c", 61 * 60.0, wanted=1, got=1)
    assert len(history) == 1
