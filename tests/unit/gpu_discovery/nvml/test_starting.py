"""A child that exited is restarted at once; one that keeps exiting is restarted at growing intervals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.nvml.backoff import Backoff
from partage_gpu.nvml.facts import TroubleKind


def next_start(starting: Backoff, now: float) -> float:
    """The time to the next start, in steps of a tenth of a second."""
    return next(now + tenth / 10 for tenth in range(1000) if starting.may_start(now + tenth / 10)) - now


def pauses(kind: TroubleKind, count: int) -> list[float]:
    starting, now, found = Backoff(), 0.0, list[float]()
    for _ in range(count):
        starting.failed(kind, started=now, now=now)
        found.append(next_start(starting, now))
        now += found[-1]
    return found


def test_the_first_start_is_at_once() -> None:
    assert Backoff().may_start(0.0)


def test_pauses_grow_to_five_seconds() -> None:
    assert pauses("failed", 7) == [0, 1, 2, 4, 5, 5, 5]


def test_a_machine_without_the_library_is_asked_rarely() -> None:
    assert pauses("no-library", 8) == [0, 1, 2, 4, 8, 16, 30, 30]


def test_a_child_that_lived_for_a_good_while_failed_for_the_first_time() -> None:
    starting = Backoff()
    for _ in range(5):
        starting.failed("failed", started=0.0, now=0.0)
    starting.failed("failed", started=100.0, now=130.0)
    assert starting.may_start(130.0)


def test_a_child_that_dies_right_after_each_answer_is_not_started_without_pause() -> None:
    starting = Backoff()
    for now in (0.0, 1.0):
        starting.failed("failed", started=now, now=now + 0.5)
    assert not starting.may_start(1.6)


def test_what_is_forgotten_does_not_count() -> None:
    starting = Backoff()
    for _ in range(5):
        starting.failed("failed", started=0.0, now=0.0)
    assert starting.has_failed
    starting.forget()
    assert starting.may_start(0.0)
    assert not starting.has_failed


@given(st.lists(st.tuples(st.sampled_from(["failed", "hangs", "no-library"]), st.floats(0, 100)), max_size=40))
def test_no_pause_is_longer_than_half_a_minute(failures: list[tuple[TroubleKind, float]]) -> None:
    starting, now = Backoff(), 0.0
    for kind, lived_s in failures:
        started, now = now, now + lived_s
        starting.failed(kind, started=started, now=now)
        assert starting.may_start(now + 30.0)
