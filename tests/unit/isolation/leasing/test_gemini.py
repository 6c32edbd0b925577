"""Gemini's policy decides as its source does: usage in a window, order, quotas from bursts, overuse."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.timeslices.policies.bursts import Bursts
from partage_isolation.timeslices.policies.gemini import Gemini
from partage_isolation.timeslices.policies.policy import Tally

NOW = 1000 * SECOND
OURS = Gemini()
KUBESHARE = Gemini(quota_ns=300 * MS, least_ns=20 * MS)
_PARAMETERS = st.sampled_from([OURS, KUBESHARE])
_TOKENS = st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 3000)), min_size=1, max_size=12)
"""How long it was without the card, and then how long it had the card, in ms."""


def has(account: Tally, gemini: Gemini, held: int, now: int) -> None:
    """Request the card, and hold it until `now`."""
    gemini.asks(account, now - held)
    gemini.charge(account, held, now)
    gemini.ended(account, now, is_idle=True)


def after(tokens: Sequence[tuple[int, int]], account: Tally, gemini: Gemini) -> tuple[int, list[tuple[int, int]]]:
    """The end of the last token, and the start and end of each."""
    now, had = NOW, []
    for away, held in tokens:
        now += (away + held) * MS
        has(account, gemini, held * MS, now)
        had.append((now - held * MS, now))
    return now, had


def within(had: Sequence[tuple[int, int]], begins: int) -> int:
    return sum(max(0, end - max(start, begins)) for start, end in had)


# ---- Usage -----------------------------------------------------------------------------------------------------------


@given(_PARAMETERS, _TOKENS, st.integers(0, 15_000))
def test_each_token_counts_with_the_part_that_lies_in_the_window(
    gemini: Gemini, tokens: list[tuple[int, int]], later: int
) -> None:
    account = Tally(500, 1000)
    now, had = after(tokens, account, gemini)
    now += later * MS
    assert gemini.used(account, now) == within(had, now - gemini.window_ns)


@given(_TOKENS, st.integers(0, 500), st.integers(0, 500))
def test_work_after_a_token_lengthens_it_and_never_past_now(
    tokens: list[tuple[int, int]], late: int, passed: int
) -> None:
    """Until its next request. A refund shortens it, and never below zero."""
    account = Tally(500, 1000)
    now, had = after(tokens, account, OURS)
    start, end = had[-1]
    now += passed * MS
    OURS.charge(account, late * MS, now)
    assert OURS.used(account, now) == within([*had[:-1], (start, min(now, end + late * MS))], now - OURS.window_ns)
    OURS.charge(account, -3600 * SECOND, now)
    assert OURS.used(account, now) == within(had[:-1], now - OURS.window_ns)


def test_what_overruns_its_quota_is_used_in_full() -> None:
    account = Tally(500, 1000)
    has(account, OURS, 400 * MS, NOW)
    assert OURS.used(account, NOW) == 400 * MS


# ---- Eligibility and order -------------------------------------------------------------------------------------------


@given(st.integers(1, 999), _TOKENS)
def test_above_its_limit_in_the_window_a_container_waits_until_it_is_below(
    limit: int, tokens: list[tuple[int, int]]
) -> None:
    account = Tally(0, limit)
    now, _ = after(tokens, account, OURS)
    opens = OURS.opens_at(account, now)
    assert now <= opens <= now + OURS.window_ns + 1
    counted = min(OURS.window_ns, opens - (NOW + tokens[0][0] * MS))
    assert OURS.used(account, opens) * 1000 < limit * counted or not OURS.used(account, opens)
    if opens > now:
        assert OURS.opens_at(account, opens) == opens


def test_one_that_is_alone_reaches_its_limit_from_the_start() -> None:
    """Also in a window that is younger than ten seconds, and never exceeded by more than a token."""
    account, now, had = Tally(0, 500), NOW, 0
    for _ in range(100):
        OURS.asks(account, now)
        now = OURS.opens_at(account, now)
        run = OURS.run_ns(account, now, is_contended=False) or 0
        now, had = now + run, had + run
        OURS.charge(account, run, now)
        OURS.ended(account, now, is_idle=False)
        assert had <= (now - NOW) // 2 + run
    assert had == pytest.approx((now - NOW) / 2, rel=0.02)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 9000)), min_size=2, max_size=2))
def test_the_order_is_by_what_is_missing_of_a_share_then_by_usage(two: list[tuple[int, int]]) -> None:
    """As in the published comparison, between two that both used something."""
    accounts = [Tally(share, 1000) for share, _ in two]
    for account, (_, held) in zip(accounts, two, strict=True):
        OURS.charge(account, held * MS, NOW)
        OURS.ended(account, NOW, is_idle=True)
    (a, a_used), (b, b_used) = two
    a_missing, b_missing = a * 10 - a_used, b * 10 - b_used
    if a_missing > 0 and b_missing > 0:
        is_first = a_missing * (b_missing + b_used) > b_missing * (a_missing + a_used)
        is_equal = a_missing * (b_missing + b_used) == b_missing * (a_missing + a_used)
    elif a_missing > 0 or b_missing > 0:
        is_first, is_equal = a_missing > 0, False
    else:
        is_first, is_equal = a_used < b_used, a_used == b_used
    ranks = [OURS.rank(account, NOW) for account in accounts]
    assert is_equal or (ranks[0] < ranks[1]) == is_first


def test_one_that_used_nothing_in_the_window_is_served_at_once() -> None:
    fresh, behind = Tally(0, 1000), Tally(900, 1000)
    OURS.asks(behind, NOW - OURS.window_ns)
    has(behind, OURS, MS, NOW)
    assert OURS.rank(fresh, NOW) < OURS.rank(behind, NOW)


# ---- Quotas ----------------------------------------------------------------------------------------------------------


def test_a_quota_follows_the_burst_that_is_expected() -> None:
    """Half of the burst plus half of the last quota, within its bounds."""
    account, now = Tally(500, 1000), NOW
    quotas: list[int | None] = []
    for _ in range(6):
        quotas.append(KUBESHARE.run_ns(account, now, is_contended=True))
        has(account, KUBESHARE, 60 * MS, now + 60 * MS)
        now += 90 * MS
        KUBESHARE.asks(account, now)
    assert quotas == [300 * MS, 180 * MS, 120 * MS, 90 * MS, 75 * MS, 67_500_000]


@given(_PARAMETERS, st.integers(1, 1000), _TOKENS)
def test_a_quota_stays_within_its_bounds(gemini: Gemini, limit: int, tokens: list[tuple[int, int]]) -> None:
    account = Tally(0, limit)
    now, _ = after(tokens, account, gemini)
    gemini.asks(account, now)
    most = limit * gemini.window_ns // 1000
    assert min(gemini.least_ns, most) <= (gemini.run_ns(account, now, is_contended=True) or 0) <= most


@pytest.mark.parametrize("overrun", [-MS, 0, 3 * MS])
def test_where_no_burst_ends_before_its_token_the_quota_is_the_basic_one(overrun: int) -> None:
    account, now = Tally(500, 1000), NOW
    for _ in range(10):
        OURS.asks(account, now)
        run = OURS.run_ns(account, now, is_contended=True) or 0
        assert run == OURS.quota_ns
        now += run + overrun
        OURS.charge(account, run + overrun, now)
        OURS.ended(account, now, is_idle=False)


def test_a_quota_is_decided_when_it_asks_and_not_when_it_is_asked_for_again() -> None:
    account = Tally(500, 1000)
    has(account, OURS, 60 * MS, NOW)
    later = NOW + 30 * MS
    OURS.asks(account, later)
    once = OURS.run_ns(account, later, is_contended=True)
    for _ in range(3):
        OURS.asks(account, later + 5 * SECOND)
        assert OURS.run_ns(account, later + 5 * SECOND, is_contended=True) == once


# ---- Bursts ----------------------------------------------------------------------------------------------------------


_PAUSES = st.one_of(st.integers(0, 3), st.integers(0, 2000), st.just(3000))


@given(st.lists(st.tuples(st.integers(1, 50), _PAUSES), min_size=1, max_size=20))
@example([(5, 2)])
def test_the_longest_burst_of_three_seconds_is_expected(lived: list[tuple[int, int]]) -> None:
    """Bursts and pauses in ms. Pauses of 2 ms or less merge bursts; if all are that short, a burst counts twice."""
    bursts, now = Bursts(), NOW
    seen: list[tuple[int, int]] = []
    pauses: list[tuple[int, int]] = []
    began, last = 0, -SECOND
    for burst, pause in lived:
        began = began if now - last <= 2 * MS else now
        last = now + burst * MS
        bursts.ended(now, last)
        seen.append((last, last - began))
        now = last + pause * MS
        bursts.paused(last, now)
        pauses.append((now, pause * MS))
    longest = max((length for at, length in seen if now - at <= 3 * SECOND), default=0)
    is_short = max(length for at, length in pauses if now - at <= 3 * SECOND) < 2 * MS
    assert bursts.expected_ns(now) == (2 * longest if is_short else longest)


def test_a_burst_that_is_cut_off_is_not_merged_with_the_next() -> None:
    bursts = Bursts()
    bursts.ended(NOW, NOW + 5 * MS)
    bursts.cut_off()
    bursts.ended(NOW + 6 * MS, NOW + 10 * MS)
    bursts.paused(NOW + 10 * MS, NOW + 20 * MS)
    assert bursts.expected_ns(NOW + 20 * MS) == 5 * MS
