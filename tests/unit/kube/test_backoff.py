"""Waits grow, are jittered and bounded, and are never shorter than the server requested."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_base.kube import Backoff, KubeError, NotFound, ServerFailed, Throttled, Unreachable

DRAWS = st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20)


def throttled(retry_after_s: float | None) -> Throttled:
    return Throttled("GET /x", status=429, retry_after_s=retry_after_s)


@given(draws=DRAWS, first_s=st.floats(0.01, 10), factor=st.floats(1, 100))
def test_each_wait_is_between_half_and_all_of_one_that_doubles_up_to_the_most(
    draws: list[float], first_s: float, factor: float
) -> None:
    most_s, left = first_s * factor, iter(draws)
    backoff = Backoff(first_s=first_s, most_s=most_s, random=lambda: next(left))
    for number, draw in enumerate(draws):
        whole_s = min(first_s * 2**number, most_s)
        assert backoff.after() == pytest.approx(whole_s * (1 + draw) / 2)


@given(asked_s=st.floats(0, 300), tries=st.integers(1, 10), draw=st.floats(0, 1, exclude_max=True))
def test_what_the_server_asks_for_is_a_least(asked_s: float, tries: int, draw: float) -> None:
    backoff = Backoff(first_s=0.5, most_s=30, random=lambda: draw)
    for _ in range(tries):
        assert backoff.after(throttled(asked_s)) > asked_s
        assert backoff.after(ServerFailed("GET /x", status=503, retry_after_s=asked_s)) > asked_s


@pytest.mark.parametrize(
    "error", [None, throttled(None), NotFound("GET /x", status=404), Unreachable("GET /x", "away", may_be_done=False)]
)
def test_whoever_asks_for_nothing_gets_the_usual_wait(error: KubeError | None) -> None:
    assert Backoff(first_s=2, most_s=8, random=lambda: 0.5).after(error) == 1.5


def test_a_success_begins_anew() -> None:
    backoff = Backoff(first_s=1, most_s=8, random=lambda: 0.0)
    assert [backoff.after() for _ in range(5)] == [0.5, 1, 2, 4, 4]
    backoff.reset()
    assert backoff.after() == 0.5


@pytest.mark.parametrize(("first_s", "most_s"), [(0, 1), (-1, 1), (2, 1)])
def test_waits_that_can_not_be_are_a_mistake_of_ours(first_s: float, most_s: float) -> None:
    with pytest.raises(ValueError, match="first_s"):
        Backoff(first_s=first_s, most_s=most_s, random=lambda: 0.0)
