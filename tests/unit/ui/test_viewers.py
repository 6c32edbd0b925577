"""Sessions end, are bounded, and never at another's expense."""

from __future__ import annotations

from partage_ui.viewers import MOST_OF_ONE, MOST_RIGHTS, MOST_STREAMS_OF_ONE, Person, Right, Viewer, Viewers


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_is_known_by_its_key_until_its_time_is_over() -> None:
    clock = Clock()
    viewers = Viewers(clock=clock)
    key = viewers.enter(Person(username="ada"), lasts_s=60)
    assert key is not None
    viewer = viewers.of(key)
    assert viewer is not None
    assert viewers.of(key[:-1]) is None
    clock.now = 60
    assert (viewers.of(key), viewers.is_in(viewer)) == (None, False)


def test_who_signs_out_is_out_on_every_page_that_is_open() -> None:
    viewers = Viewers(clock=Clock())
    key = viewers.enter(Person(username="ada"), lasts_s=60) or ""
    viewer = viewers.of(key)
    viewers.leave(key)
    assert viewers.of(key) is None
    assert viewer is not None
    assert not viewers.is_in(viewer)


def test_a_person_with_too_many_sessions_loses_the_oldest_and_costs_nobody_else_one() -> None:
    viewers = Viewers(clock=Clock(), most=MOST_OF_ONE + 1)
    other = viewers.enter(Person(username="grace"), lasts_s=60) or ""
    keys = [viewers.enter(Person(username="ada"), lasts_s=60) or "" for _ in range(MOST_OF_ONE + 2)]
    assert [viewers.of(key) is not None for key in keys] == [False, False, *[True] * MOST_OF_ONE]
    assert viewers.of(other) is not None
    assert viewers.enter(Person(username="linus"), lasts_s=60) is None


def test_streams_and_rights_of_one_viewer_are_bounded() -> None:
    viewers, viewer = Viewers(clock=Clock()), Viewer(Person(username="ada"), 60)
    begun = [viewers.begin_stream(viewer) for _ in range(MOST_STREAMS_OF_ONE + 1)]
    assert begun == [*[True] * MOST_STREAMS_OF_ONE, False]
    viewers.end_stream(viewer)
    assert viewers.begin_stream(viewer)
    for number in range(2 * MOST_RIGHTS):
        viewer.remember(Right("list", "pods", f"n{number}"), is_granted=True, until=1)
    assert len(viewer.rights) == MOST_RIGHTS
