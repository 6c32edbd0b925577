"""Each container gets its guaranteed time under any fault: whole nodes in simulated time, deterministically.

Shares are of a card's real time. Programs that leave gaps themselves are measured only by what they reach.
"""

from __future__ import annotations

from functools import cache

import pytest

from partage_isolation.timeslices.durations import MS, SECOND
from partage_isolation.timeslices.policies import Gemini
from support.extent import drawn
from support.lease_simulation import Case, Container, Figures, Trouble, matrix, run
from support.lease_simulation.cases import What
from support.lease_simulation.workloads import (
    US,
    Workload,
    flood,
    idle,
    inference,
    launch_and_wait,
    mixed,
    never_ending,
    on_and_off,
    training,
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
        assert told.got_ns / told.wanted_ns == pytest.approx(share, abs=0.02)
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


# ---- Faults ----------------------------------------------------------------------------------------------------------


_WORKLOADS = pytest.mark.parametrize("workload", [flood(MS), launch_and_wait(MS), inference()])
_OFFSETS = pytest.mark.parametrize("offset_ms", drawn("unit/isolation: when troubles come", range(0, 60, 7), 3))


def beside(first: Container, *others: Container, seconds: int = 12, seed: int = 1, tells: bool = True) -> Figures:
    rest = others or (Container(500, flood(MS)),)
    return run(Case((first, *rest), lasts_ns=seconds * SECOND, skip_ns=0, seed=seed, tells_stopped=tells))


def stops(at_ns: int, until_ns: int, process: int = 0) -> tuple[Trouble, ...]:
    return Trouble(at_ns, What.STOPS, process), Trouble(until_ns, What.GOES_ON, process)


@_OFFSETS
@_WORKLOADS
def test_whenever_a_container_is_stopped_others_go_on_and_it_is_right_again_afterwards(
    workload: Workload, offset_ms: int
) -> None:
    at = 3 * SECOND + offset_ms * MS
    figures = beside(Container(500, workload, troubles=stops(at, at + 3 * SECOND)))
    before = figures.between(0, 1, 3)
    assert figures.between(1, 4, 6) >= 0.97
    assert figures.between(0, 8, 12) == pytest.approx(before, abs=0.02)


@_OFFSETS
def test_a_stopped_process_takes_nothing_from_its_container(offset_ms: int) -> None:
    troubles = stops(3 * SECOND + offset_ms * MS, 8 * SECOND)
    figures = beside(Container(500, flood(MS), processes=2, troubles=troubles))
    assert figures.between(0, 5, 8) == pytest.approx(0.5, abs=0.02)
    assert figures.between(1, 5, 8) == pytest.approx(0.5, abs=0.02)
    assert figures.between(0, 10, 12) == pytest.approx(0.5, abs=0.02)


def test_where_nobody_looks_whether_it_is_stopped_it_comes_back_without_debt() -> None:
    figures = beside(Container(300, flood(MS), troubles=stops(3 * SECOND, 6 * SECOND)), tells=False)
    assert figures.between(0, 8, 12) == pytest.approx(0.375, abs=0.02)


@_OFFSETS
@_WORKLOADS
def test_whenever_a_container_is_killed_others_have_the_card(workload: Workload, offset_ms: int) -> None:
    at = 3 * SECOND + offset_ms * MS
    figures = beside(Container(500, workload, troubles=(Trouble(at, What.DIES),)), seconds=6)
    assert figures.between(1, 4, 6) >= 0.99


def test_a_killed_process_takes_nothing_from_its_container() -> None:
    troubles = tuple(Trouble(SECOND + number * 313 * MS, What.DIES, number) for number in range(9))
    figures = beside(Container(500, launch_and_wait(MS), processes=10, troubles=troubles), seconds=8)
    assert figures.between(1, 5, 8) == pytest.approx(0.5, abs=0.03)
    assert figures.between(0, 5, 8) >= 0.45


def test_a_kernel_that_never_ends_takes_no_more_than_the_card_gives_it() -> None:
    figures = beside(Container(500, never_ending(3 * SECOND)))
    assert figures.between(1, 5, 12) == pytest.approx(0.5, abs=0.02)


def test_and_a_third_container_keeps_its_part_of_what_is_left() -> None:
    others = (Container(250, flood(MS)), Container(250, flood(MS)))
    figures = beside(Container(500, never_ending(3 * SECOND)), *others)
    assert figures.between(1, 5, 12) == pytest.approx(0.25, abs=0.02)
    assert figures.between(2, 5, 12) == pytest.approx(0.25, abs=0.02)


def test_one_that_dies_with_its_kernel_leaves_shares_right() -> None:
    first = Container(300, never_ending(3 * SECOND), troubles=(Trouble(6 * SECOND, What.DIES),))
    figures = beside(first, Container(300, flood(MS)), Container(400, flood(MS)))
    assert figures.between(1, 8, 12) == pytest.approx(3 / 7, abs=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_gangs_that_cross_get_their_shares_and_never_block_each_other(seed: int) -> None:
    rings = ((0, 1), (1, 2), (0, 2))
    containers = tuple(Container(500, flood(MS), cards=cards) for cards in rings)
    figures = run(Case(containers, lasts_ns=8 * SECOND, seed=seed))
    for number in range(3):
        assert figures.shares[number] >= 0.6  # two cards in one of three turns; two where cards are free


def test_a_gang_runs_on_no_card_at_the_cost_of_what_others_were_promised() -> None:
    containers = (
        Container(100, flood(MS), cards=(0, 1)),
        Container(900, flood(MS)),
        Container(100, flood(MS), cards=(1,)),
    )
    figures = run(Case(containers, lasts_ns=20 * SECOND))
    assert figures.shares[0] == pytest.approx(0.2, abs=0.02)
    assert figures.shares[1] == pytest.approx(0.9, abs=0.01)
    assert figures.shares[2] >= 0.88


def test_a_gang_answers_quickly_beside_training_on_all_its_cards() -> None:
    containers = (
        Container(300, inference(), cards=(0, 1, 2)),
        *(Container(700, flood(MS), cards=(card,)) for card in range(3)),
    )
    figures = run(Case(containers, lasts_ns=10 * SECOND))
    assert figures.quantile_ms(0, 0.99) <= 12


@pytest.mark.parametrize("offset_ms", range(0, 40, 7))
def test_a_gang_whose_process_stops_or_dies_blocks_nobody(offset_ms: int) -> None:
    at = 2 * SECOND + offset_ms * MS
    troubles = (*stops(at, at + SECOND), Trouble(at + 2 * SECOND, What.DIES, 1))
    containers = (
        Container(500, flood(MS), cards=(0, 1), troubles=troubles),
        Container(500, flood(MS)),
        Container(500, flood(MS), cards=(1,)),
    )
    figures = run(Case(containers, lasts_ns=8 * SECOND, skip_ns=0))
    assert figures.between(1, 6, 8) == pytest.approx(0.5, abs=0.02)
    assert figures.between(2, 6, 8) >= 0.99


def trained(*containers: Container, seconds: int = 10) -> Figures:
    return run(Case(containers, lasts_ns=seconds * SECOND))


def test_training_on_several_cards_shares_them_with_others() -> None:
    figures = trained(
        Container(500, training(), cards=(0, 1)), Container(500, flood(MS)), Container(500, flood(MS), cards=(1,))
    )
    assert figures.shares == pytest.approx((1.0, 0.5, 0.5), abs=0.04)
    assert figures.overlapped == 0


def test_collectives_of_gangs_that_cross_end() -> None:
    figures = trained(*(Container(500, training(), cards=cards) for cards in ((0, 1), (1, 2), (0, 2))))
    assert min(figures.shares) >= 0.6
    assert figures.overlapped == 0


def test_a_gang_whose_cards_were_given_apart_comes_together_again() -> None:
    """One process requested a little later than the others: their collective runs without an end until it is served."""
    figures = trained(
        Container(50, launch_and_wait(MS), cards=(2,), processes=3),
        Container(100, training(), cards=(0, 1, 2)),
        Container(850, flood(MS), cards=(0, 1, 2)),
    )
    assert figures.shares[1] / 3 == pytest.approx(0.1, abs=0.02)
    assert figures.shares[2] / 3 >= 0.8
    assert figures.overlapped <= 0.01


def test_a_gang_beside_long_kernels_on_one_card_keeps_the_other_busy() -> None:
    figures = trained(
        Container(300, training(), cards=(0, 1)),
        Container(700, launch_and_wait(MS)),
        Container(700, mixed(10_000, MS, 30 * MS), cards=(1,)),
    )
    assert figures.shares[0] / 2 >= 0.26
    assert figures.shares[1] >= 0.62
    assert figures.shares[2] >= 0.66


def test_one_that_is_between_two_launches_loses_no_turn_to_long_kernels_of_several_processes() -> None:
    figures = trained(Container(100, flood(30 * MS), processes=3), Container(900, launch_and_wait(MS)))
    assert figures.shares[1] >= 0.83
