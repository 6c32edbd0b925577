"""Events that others can trigger at will are logged at intervals, with the number of suppressed ones."""

from __future__ import annotations

import structlog
from hypothesis import given
from hypothesis import strategies as st

from partage_base.daemon import logs
from partage_base.daemon.logs import Repeats


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_speaks_and_the_next_waits_its_time() -> None:
    clock = _Clock()
    refused = Repeats(every_s=10, clock=clock)
    assert refused.due("a") == 0
    clock.now = 9.9
    assert refused.due("a") is None
    clock.now = 10
    assert refused.due("a") == 1


def test_keys_speak_for_themselves() -> None:
    refused = Repeats(every_s=10, clock=_Clock())
    assert (refused.due("a"), refused.due("b"), refused.due("a"), refused.due()) == (0, 0, None, 0)


@given(st.lists(st.floats(0, 100)).map(sorted))
def test_nothing_is_lost_from_the_count(times: list[float]) -> None:
    clock = _Clock()
    refused = Repeats(every_s=10, clock=clock)
    spoken = silent = 0
    for clock.now in times:
        repeated = refused.due("a")
        spoken += repeated is not None
        silent += repeated or 0
    clock.now = 1000
    assert spoken + silent + (refused.due("a") or 0) == len(times)


def test_keys_chosen_by_an_attacker_take_bounded_memory() -> None:
    refused = Repeats(every_s=10, clock=_Clock())
    for number in range(3 * logs.MOST_KEYS):
        refused.due(number)
    assert len(refused) == logs.MOST_KEYS


def test_of_too_many_keys_the_one_that_spoke_longest_ago_is_forgotten() -> None:
    clock = _Clock()
    refused = Repeats(every_s=10, clock=clock)
    for number in range(logs.MOST_KEYS):
        refused.due(number)
    clock.now = 20
    refused.due(3)
    for number in range(5):
        refused.due(f"new {number}")
    assert refused.due(3) is None


def test_what_failed_is_one_line_for_each_type_of_error_with_how_often_it_was_silent() -> None:
    clock = _Clock()
    refused = Repeats(every_s=10, clock=clock)
    with structlog.testing.capture_logs() as lines:
        for clock.now, error in ((0, OSError("a")), (1, OSError("b")), (2, ValueError("c")), (10, OSError("d"))):
            refused.failed("not done", error, pod="p")
    assert [(line["log_level"], line["pod"], line["why"], line["repeats"]) for line in lines] == [
        ("warning", "p", "a", 0),
        ("warning", "p", "c", 0),
        ("warning", "p", "d", 1),
    ]
