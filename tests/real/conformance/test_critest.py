"""critest directly at containerd and through crishim: exactly what passes directly passes through crishim."""

from __future__ import annotations

import pytest

from rig.critest import Outcome, exemptions, judge, probe
from support.crishim import figures

from .conftest import RUNS, Way

pytestmark = pytest.mark.timeout(3600)
CREATED_AT_LEAST = 50


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("straight", marks=pytest.mark.extended("no code of ours is on it; it keeps the list true")),
        "through",
    ],
)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.getfixturevalue(request.param)
    return found


def test_nothing_fails_but_what_is_listed_and_nothing_listed_passes(way: Way) -> None:
    for run in way.runs.values():
        wrong = judge(run.result(), exemptions(), probe(way.runtime.programs["runc"]))
        assert not wrong, "\n".join(wrong)


@pytest.mark.extended("compares several runs; the one of make test is held to the list")
def test_runs_agree_whatever_the_way_and_the_order_of_the_specs(straight: Way, through: Way) -> None:
    runs = [run.result() for way in (straight, through) for run in way.runs.values()]
    for outcome in Outcome:
        assert len({run.specs(outcome) for run in runs}) == 1, outcome


def test_crishim_held_each_run_s_containers_and_let_all_pass(through: Way) -> None:
    for run in through.runs.values():
        run.result()
    found = figures(through.runtime.machine)
    held = {series: count for series, count in found.items() if series.startswith("partage_crishim_held_total")}
    assert held.keys() == {'partage_crishim_held_total{outcome="passed"}'}
    assert min(held.values()) > CREATED_AT_LEAST * RUNS
    assert found["partage_crishim_broken_total"] == 0


def test_a_run_leaves_no_file(way: Way) -> None:
    for run in way.runs.values():
        run.result()
    assert not way.left()
