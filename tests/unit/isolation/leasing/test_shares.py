"""Everybody gets what he was promised: whole nodes in simulated time, the same each time.

Shares are of a card's real time. Programs that leave gaps themselves are measured by what they reach alone.
"""

from __future__ import annotations

from functools import cache

import pytest

from partage_isolation.leases.durations import MS, SECOND
from partage_isolation.leases.policies import Gemini
from support.lease_simulation import Case, Container, Figures, matrix, run
from support.lease_simulation.workloads import (
    US,
    flood,
    idle,
    inference,
    mixed,
    on_and_off,
)

pytestmark = pytest.mark.slow

_SPLITS = pytest.mark.parametrize("split", matrix.SPLITS, ids=str)
_KINDS = pytest.mark.parametrize("kind", matrix.KINDS)
_PARAMETERS = pytest.mark.parametrize("gemini", [matrix.PUBLISHED, matrix.KUBESHARE], ids=["published", "kubeshare"])
alone = cache(matrix.alone)


def flooded(
    *shares: int, policy: str = "virtual-time", seconds: int = 12, gemini: Gemini = matrix.PUBLISHED
) -> Figures:
    containers = tuple(Container(share, flood(MS)) for share in shares)
    return run(Case(containers, policy=policy, lasts_ns=seconds * SECOND, gemini=gemini))


@_KINDS
@_SPLITS
def test_shares_are_right_whatever_is_launched(split: tuple[int, ...], kind: str) -> None:
    judged = matrix.split(split, kind)
    assert judged.worst <= 0.01
    assert judged.sigma <= 0.03
    assert judged.total >= 0.98


@_SPLITS
def test_long_kernels_take_nothing_from_short_ones(split: tuple[int, ...]) -> None:
    judged = matrix.long_beside_short(split)
    assert judged.worst <= 0.01
    assert judged.sigma <= 0.05
    assert judged.total >= 0.98


def test_what_nobody_was_promised_is_divided_by_share() -> None:
    figures = flooded(100, 300)
    assert figures.shares == pytest.approx((0.25, 0.75), abs=0.01)


@pytest.mark.parametrize("limits", [(300, 700), (300, 500)])
def test_ceilings_hold(limits: tuple[int, int]) -> None:
    containers = tuple(Container(limit, flood(MS), limit=limit) for limit in limits)
    figures = run(Case(containers, lasts_ns=12 * SECOND))
    for limit, got, sigma in zip(limits, figures.shares, figures.sigmas, strict=True):
        assert limit / 1000 - 0.02 <= got <= limit / 1000 + 0.002
        assert sigma <= 0.03


@pytest.mark.parametrize("kernel_ns", [10 * US, MS, 5 * MS])
def test_a_ceiling_holds_for_who_is_alone(kernel_ns: int) -> None:
    figures = run(Case((Container(500, flood(kernel_ns), limit=500),), lasts_ns=12 * SECOND))
    assert 0.48 <= figures.total <= 0.502


def test_what_one_does_not_use_under_a_ceiling_others_do() -> None:
    figures = run(Case((Container(200, flood(MS), limit=200), Container(300, flood(MS))), lasts_ns=12 * SECOND))
    assert figures.shares == pytest.approx((0.2, 0.8), abs=0.015)


@_KINDS
def test_who_is_alone_loses_nothing(kind: str) -> None:
    workload, processes = matrix.KINDS[kind]
    figures = run(Case((Container(500, workload, processes=processes),), lasts_ns=5 * SECOND))
    assert figures.total >= 0.999 * alone(kind)


@_KINDS
def test_who_shares_with_somebody_idle_loses_next_to_nothing(kind: str) -> None:
    workload, processes = matrix.KINDS[kind]
    containers = (Container(500, workload, processes=processes), Container(500, idle()))
    assert run(Case(containers, lasts_ns=5 * SECOND)).total >= 0.99 * alone(kind)


def test_the_time_of_an_idle_neighbour_is_used() -> None:
    containers = (Container(500, on_and_off(2 * SECOND, 3 * SECOND)), Container(500, flood(MS)))
    figures = run(Case(containers, lasts_ns=21 * SECOND))
    assert figures.total >= 0.99
    assert figures.shares[0] >= 0.2 * 0.95


@_PARAMETERS
def test_an_answer_is_quick_beside_training_and_far_quicker_than_under_gemini(gemini: Gemini) -> None:
    ours, theirs = matrix.answers(), matrix.answers("gemini", gemini=gemini)
    assert ours.quantile_ms(0, 0.99) <= 0.08 * theirs.quantile_ms(0, 0.99)
    assert ours.quantile_ms(0, 0.99) <= 8
    assert ours.total >= 0.96


@pytest.mark.parametrize("seed", range(5))
def test_with_long_training_kernels_an_answer_waits_for_two_of_them_at_most(seed: int) -> None:
    containers = (Container(300, inference()), Container(700, mixed(5 * MS, 15 * MS, 30 * MS)))
    figures = run(Case(containers, lasts_ns=20 * SECOND, seed=seed))
    assert figures.quantile_ms(0, 0.99) <= 6 + 2 * 30 + 1


@_PARAMETERS
def test_gemini_divides_as_published(gemini: Gemini) -> None:
    figures = flooded(300, 700, policy="gemini", seconds=41, gemini=gemini)
    assert figures.shares == pytest.approx((0.3, 0.7), abs=0.02)
    assert max(figures.sigmas) >= 0.05


def test_caps_leave_idle_what_was_not_asked_for() -> None:
    assert flooded(300, 200, policy="caps").shares == pytest.approx((0.3, 0.2), abs=0.01)


def test_without_metering_the_card_divides_as_it_does() -> None:
    figures = flooded(100, 900, policy="free-run", seconds=4)
    assert figures.shares == pytest.approx((0.5, 0.5), abs=0.01)


def test_what_the_arbiter_tells_is_what_the_card_did() -> None:
    figures = flooded(300, 700)
    for number, share in ((0, 0.3), (1, 0.7)):
        told = figures.told[number]
        assert told.got.s10 == pytest.approx(share, abs=0.01)
        assert told.wanted.s10 == pytest.approx(1, abs=0.01)
        assert told.overlaps == 0
        assert told.drains.sum_ns / told.drains.count < 2 * MS


@pytest.mark.parametrize("grain_ns", [0, MS, 4 * MS])
def test_late_timers_change_no_shares(grain_ns: int) -> None:
    containers = (Container(300, flood(MS)), Container(700, mixed(10 * US, MS, 30 * MS)))
    figures = run(Case(containers, grain_ns=grain_ns, lasts_ns=12 * SECOND))
    assert figures.shares == pytest.approx((0.3, 0.7), abs=0.015)


def test_the_same_seed_gives_the_same_figures() -> None:
    case = Case((Container(300, mixed(10 * US, MS, 30 * MS)), Container(700, inference())), lasts_ns=3 * SECOND)
    assert run(case) == run(case)
