"""A card divides its time among processes: a container with many of them gets no more of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.timeslices.durations import MS, SECOND, Timing
from partage_isolation.timeslices.meter import divided
from support.lease_simulation import Case, Container, Figures, run
from support.lease_simulation.workloads import flood, inference

LONG = flood(30 * MS)


def beside(*containers: Container, quanta: int = 8) -> Figures:
    return run(Case(containers, lasts_ns=10 * SECOND, timing=Timing(quantum_ns=20 * MS, drain_quanta=quanta)))


@given(st.integers(0, 1 << 60), st.lists(st.integers(1, 256), min_size=1, max_size=8))
def test_all_that_is_divided_is_charged_each_within_a_nanosecond_of_its_part(amount: int, processes: list[int]) -> None:
    parts = divided(amount, processes)
    assert sum(parts) == amount
    for part, each in zip(parts, processes, strict=True):
        assert abs(part * sum(processes) - amount * each) <= sum(processes)


@pytest.mark.slow
@pytest.mark.parametrize("share", [100, 300, 500])
@pytest.mark.parametrize("processes", [4, 8])
def test_processes_of_long_kernels_have_their_containers_share_together(share: int, processes: int) -> None:
    figures = beside(Container(share, LONG, processes=processes), Container(1000 - share, flood(MS)))
    assert figures.shares == pytest.approx((share / 1000, 1 - share / 1000), abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kernel_ms", [30, 100])
def test_so_they_have_where_nobody_waits_long_enough_for_them(kernel_ms: int) -> None:
    long = Container(300, flood(kernel_ms * MS), processes=4)
    figures = beside(long, Container(700, flood(MS)), quanta=2)
    assert figures.overlapped > 0.1
    assert figures.shares == pytest.approx((0.3, 0.7), abs=0.02)


@pytest.mark.slow
def test_two_containers_of_such_processes_are_told_apart() -> None:
    figures = beside(Container(300, LONG, processes=4), Container(700, LONG, processes=4))
    assert figures.shares == pytest.approx((0.3, 0.7), abs=0.02)
    assert figures.overlapped <= 0.03


@pytest.mark.slow
def test_requests_beside_them_have_their_share_and_wait_no_longer_than_a_drain() -> None:
    figures = beside(Container(300, inference()), Container(700, LONG, processes=4))
    assert figures.shares[0] == pytest.approx(0.2, abs=0.01)  # all that they request
    assert figures.quantile_ms(0, 0.99) <= 250
