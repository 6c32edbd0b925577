"""The benchmark harness: its figures are right, and it refuses to measure an inactive feature."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bench.harness import Bench
from bench.measuring.bars import Sense, holds
from bench.measuring.rounds import (
    Plan,
    Stolen,
    as_difference,
    compare_rounds,
    quiet_rounds,
)
from bench.measuring.surroundings import Time, time_in


class FakeClock:
    """A clock that advances only by the calls' costs."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def costing(self, nanoseconds: int) -> Callable[[], None]:
        def call() -> None:
            self.now_ns += nanoseconds

        return call


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def bench(clock: FakeClock) -> Bench:
    return Bench("toy", clock=clock, smoke=False)


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return result


def test_a_drift_that_hits_both_sides_is_no_difference() -> None:
    """Both sides become ten times slower during the run; the median of the paired differences is unchanged."""
    reference = [100.0, 200.0, 400.0, 800.0, 1_000.0]
    difference = as_difference(reference, [value + 7 for value in reference])
    assert (difference.median_ns, difference.q1_ns, difference.q3_ns) == (7, 7, 7)


def test_a_comparison_takes_turns_at_going_first() -> None:
    """One warm-up of each, then reference and candidate, candidate and reference, and so on."""
    seen = ""

    def side(name: str, cost_ns: int) -> Callable[[int], int]:
        def stretch(count: int) -> int:
            nonlocal seen
            seen += name
            return cost_ns * count

        return stretch

    difference = compare_rounds(side("r", 10), side("c", 15), Plan(rounds=3, round_ns=0))
    assert seen == "rc" + "rc" + "cr" + "rc"
    assert (difference.median_ns, difference.ratio) == (5, 1.5)


@pytest.mark.parametrize(
    ("figure", "sense", "bar", "expected"),
    [
        (20, "at_most", 20, True),
        (20.1, "at_most", 20, False),
        (1, "at_most", 0, False),
        (20, "at_least", 20, True),
        (19, "at_least", 20, False),
        (float("nan"), "at_most", 20, False),
        (float("nan"), "at_least", 20, False),
    ],
)
def test_a_figure_holds_against_a_bar(figure: float, sense: Sense, bar: float, expected: object) -> None:
    assert holds(figure, sense, bar) is expected


def test_exit_0_and_one_json_line_when_all_bars_hold(
    bench: Bench, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    timing = bench.time("call", clock.costing(2_000))
    bench.figure("resident_mib", 31.5)
    bench.bar("quick enough", timing.median_us, at_most=20, unit="us")
    assert bench.finish() == 0
    result = last_line(capsys)
    assert (result["bench"], result["smoke"]) == ("toy", False)
    assert result["figures"]["call"]["median_ns"] == 2_000
    assert result["figures"]["resident_mib"] == 31.5
    assert result["bars"] == [
        {"name": "quick enough", "figure": 2, "sense": "at_most", "bar": 20, "unit": "us", "holds": True}
    ]


def test_exit_3_when_one_bar_does_not_hold(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.bar("holds", 1, at_most=2, unit="us")
    bench.bar("does not", 1, at_least=2, unit="1/s")
    assert bench.finish() == 3
    assert "does not  1 1/s  at least 2 1/s  BROKEN" in capsys.readouterr().out


def test_smoke_runs_all_and_judges_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench.from_argv("toy", argv=["--smoke"])
    calls: list[None] = []
    bench.time("call", lambda: calls.append(None))
    bench.bar("far off", 1_000, at_most=1, unit="us")
    assert bench.finish() == 0
    assert 1 <= len(calls) < 10
    result = last_line(capsys)
    assert result["smoke"] is True
    assert result["bars"][0]["holds"] is None


def test_what_is_not_engaged_ends_the_run_with_exit_1(bench: Bench) -> None:
    """A string as SystemExit's argument is printed on stderr and exits 1."""
    with pytest.raises(SystemExit) as ended:
        bench.engaged("the signature was verified", condition=[])
    assert ended.value.code == ("bench toy: the signature was verified: not engaged, so there is nothing to measure")


def test_time_that_other_machines_took_is_told() -> None:
    before = time_in("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 2 3\n")
    assert before == Time(whole=100, stolen=10)
    assert time_in("cpu  20 0 20 140 0 0 0 20 5 0").stolen_since(before) == 0.1
    assert before.stolen_since(before) == 0


def test_disturbed_rounds_are_repeated_and_at_last_the_least_disturbed_count() -> None:
    parts = iter([0.0, 0.3, 0.01, 0.2, 0.02, 0.9])
    assert quiet_rounds(lambda: Stolen(next(parts), "x"), 3, quiet=0.02, most=9) == [
        (0.0, "x"),
        (0.01, "x"),
        (0.02, "x"),
    ]
    parts = iter([0.9, 0.3, 0.0, 0.2])
    assert [each.part for each in quiet_rounds(lambda: Stolen(next(parts), 1), 2, quiet=0.02, most=4)] == [0.0, 0.2]
